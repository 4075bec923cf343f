"""Communication with switches: OpenFlow messages, transactions, queues and the probe."""

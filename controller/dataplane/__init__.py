"""What talks to switches: OpenFlow messages, transactions, queues, paths and the probe."""

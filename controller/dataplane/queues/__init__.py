"""The queues of a switch's ports: numbers, database rows, the probe, and byte counts."""

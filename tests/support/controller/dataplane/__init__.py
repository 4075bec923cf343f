"""Switches and a database of queues to test the dataplane on: in memory, and as peers on a socket."""

"""Compares what the host's interfaces have carried with what its TCP sockets have sent and received."""

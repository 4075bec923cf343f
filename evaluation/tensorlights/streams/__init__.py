"""Parameter servers on one host as fluid streams, one for each connection: how long workers wait, by order."""

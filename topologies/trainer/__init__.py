"""The synthetic trainer: real bytes over TCP in the rhythm of distributed training, with recorded accuracy.

One process a host serves all roles of all jobs there. ``python -m topologies.trainer --help`` shows its use.
"""

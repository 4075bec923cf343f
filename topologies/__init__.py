"""Mininet networks, the synthetic trainer and the lab that runs an experiment end to end."""

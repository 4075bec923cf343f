"""Marks the packets of each job with the DSCP of its class."""

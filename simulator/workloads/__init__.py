"""What is simulated: coflow traces, training jobs and hyper-parameter tuning, with the tables that they are made from.

``models`` (what networks exchange and compute) and ``curves`` (recorded learning curves) also serve the testbed.
"""

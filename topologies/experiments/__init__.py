"""Experiments as values, which are read from a file: jobs, their arrivals, and studies."""

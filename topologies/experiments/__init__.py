"""Experiments as values: jobs, arrivals, and studies, read from a file."""

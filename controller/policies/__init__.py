"""Ordering policies: one module a policy, found by entry point (group ``trainyard.policies``)."""

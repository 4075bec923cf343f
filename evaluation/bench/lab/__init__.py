"""Benches of controller, agents and switches together, on the emulated network."""

"""The command ``trainyard``."""

"""Looks at a host: what the agent needs there, what it has, and what would help. It changes nothing."""

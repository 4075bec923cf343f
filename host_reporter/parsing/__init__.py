"""``trainyard parse``: what the agent would read from a file, for people who write job files and presets."""

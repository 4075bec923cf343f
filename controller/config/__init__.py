"""The settings file: its sections, their defaults and ranges."""

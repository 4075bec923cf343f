"""Families: what earlier runs of the same training say of the next one. Pure; the registry journals it."""

"""The SQLite copy of the registry, which survives a restart."""

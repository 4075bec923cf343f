"""One job as the registry keeps it: its record, its progress, its traffic, and how the API shows it."""

"""Settings change in a running controller: what differs, what needs a restart, and how all parts change at once."""

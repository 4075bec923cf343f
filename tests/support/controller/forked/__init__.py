"""Starts the tests' controllers as copies of a process that has imported all that a controller needs."""

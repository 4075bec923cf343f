"""Real launchers for the tests: how each is called, what it needs of the machine, and what it starts."""

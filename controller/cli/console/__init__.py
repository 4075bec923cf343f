"""``trainyard console``: the console of a running controller, or of recorded runs, in a browser."""

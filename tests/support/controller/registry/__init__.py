"""A registry and a journal with something in them, and runs of families."""

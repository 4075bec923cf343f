"""The command ``trainyard sim``: many runs, in processes or on Ray."""

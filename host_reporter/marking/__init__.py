"""The packets of jobs get the mark of their class."""

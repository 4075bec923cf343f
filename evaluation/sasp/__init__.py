"""The claim ``sasp``: computing and communicating at the same time."""

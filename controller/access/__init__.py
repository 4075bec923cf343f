"""Who calls the API, how that is proved, and what it allows."""

"""Who calls and who connects, how that is proved, and what it allows: callers, tokens, certificates."""

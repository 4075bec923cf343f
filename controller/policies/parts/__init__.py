"""What several policies use: options, ageing, and fits at the end of an epoch. Pure."""

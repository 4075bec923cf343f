"""From costs and a network to the time of an iteration."""

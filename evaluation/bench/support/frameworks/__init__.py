"""Real trainings, one for each framework, and what the callbacks cost in them."""

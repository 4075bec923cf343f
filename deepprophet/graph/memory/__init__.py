"""The memory of an iteration: who holds it how long, what of it is new, and what is still in the caches."""

"""Notes what an iteration calls, as it is played on tensors without values."""

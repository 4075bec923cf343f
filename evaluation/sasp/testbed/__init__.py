"""Real PyTorch jobs on the emulated network, one after the other, until each has its target."""

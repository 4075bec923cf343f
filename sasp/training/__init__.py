"""SaSP inside a PyTorch training: hooks, the optimizer, and gradient transport."""

"""SaSP inside a PyTorch training process: hooks on the model, the wrapped optimiser, and the transport of gradients."""

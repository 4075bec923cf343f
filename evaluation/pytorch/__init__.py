"""What the claims with PyTorch jobs share."""

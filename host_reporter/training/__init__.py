"""What runs inside a training process. It uses the standard library only."""

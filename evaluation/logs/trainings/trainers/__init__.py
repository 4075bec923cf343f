"""Programs that have the training loop themselves."""

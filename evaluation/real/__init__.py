"""The claim ``real``: real PyTorch trainings on the emulated network."""

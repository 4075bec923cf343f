"""Studies on the emulated network, driven by a tuner."""

"""TensorLights at a host: which jobs get which bands of an interface, and the part of its tree that serves them."""

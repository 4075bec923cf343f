"""The kernel's traffic control of one interface, read and changed for TensorLights through pyroute2."""

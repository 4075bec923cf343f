"""Priority at the host's network interface: the tree of queues, TensorLights, and the removal of both."""

"""How a task moves gradients: parameter server, ring, or asynchronously."""

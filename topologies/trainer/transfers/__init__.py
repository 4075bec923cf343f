"""The gradient exchanges of a task: parameter server, ring, and asynchronous parameter server."""

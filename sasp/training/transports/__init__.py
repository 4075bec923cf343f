"""What moves gradients between workers while they compute: all-reduce, or a parameter server."""

"""What makes late gradients teach as much as fresh ones, as functions of tensors, without network and threads."""

"""A job's workers in one process, by the product's code, with gradients as late as they are told to be."""

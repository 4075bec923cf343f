"""Where a model and its example batch come from: a function of the user's, or a configuration of transformers."""

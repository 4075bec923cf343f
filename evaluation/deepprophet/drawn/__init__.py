"""Architectures that are drawn by a rule, so that nobody chooses what predictions are judged on."""

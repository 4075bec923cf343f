"""Loops that people write themselves, with a library beside them or a launcher around them."""

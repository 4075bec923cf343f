"""``trainyard top``: what a running controller does, in a terminal."""

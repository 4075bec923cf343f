"""The mathematics that all policies share: loads at ports, BSSI, bounds, and classes. Pure."""

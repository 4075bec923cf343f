"""Compiles the classes and flows of a plan to switch rules and host marks, as values. Pure."""

"""A training iteration as a graph of operators, traced without computing it."""

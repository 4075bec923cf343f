"""Curve fits, orders of jobs and the simulator: how fast each is, and how close to the best known result."""

"""How far the simulator and the testbed agree on the times of the same jobs."""

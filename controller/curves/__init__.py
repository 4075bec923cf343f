"""From a metric's history to the iterations that a job has left. Pure."""

"""The pairs of hosts that share a job, and the rules that give their traffic a place."""

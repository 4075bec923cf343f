"""``trainyard explain``: why a job has its class, what it waits for, and what would help."""

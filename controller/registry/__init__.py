"""What the controller knows now: jobs, hosts, and their traffic."""

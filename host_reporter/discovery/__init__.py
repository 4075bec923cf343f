"""Finds the sockets of unmodified jobs: from a job's cgroup or process tree to its connections, through sock_diag."""

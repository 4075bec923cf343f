"""The sockets of network namespaces: read from the kernel, counted by job, told apart as links, and marked."""

"""One module a launcher: what its variables and cgroups say. Pure."""

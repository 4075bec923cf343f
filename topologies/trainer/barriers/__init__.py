"""When the workers of a parameter-server job come to each barrier, how long they wait, and why."""

"""Plans of training beyond a copy a worker: predicted by the command, and measured on real ranks."""

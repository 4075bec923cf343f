"""What launchers, containers and loggers put before a line, and how it is taken away."""

"""The controller as a process: start, signals, stop, and the watchdog."""

"""The compiled loops of the simulator: events, and the rates of flows."""

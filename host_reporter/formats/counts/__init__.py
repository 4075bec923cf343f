"""From readings to events: where a run is, and which metric is its own."""

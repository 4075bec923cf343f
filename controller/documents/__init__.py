"""YAML and JSON that people write: read with the line of each value, and faults in words that say what is right."""

"""Jobs that are found by their processes: what this host knows of each, its beginning and end, and its output."""

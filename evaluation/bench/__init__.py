"""``scripts/bench``: speed and memory of the hot paths, beside a peer or a floor in the same run."""

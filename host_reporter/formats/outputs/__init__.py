"""Lines and records of an output in, events out, by a preset or by what a job file explains."""

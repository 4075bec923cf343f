"""The way of a host's report into the jobs: a batch is accepted, merged part by part, and answered."""

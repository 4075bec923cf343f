"""How soon the API, its events and the console answer, with many clients, many jobs and large requests."""

"""Recordings of real launches: what is launched, and what each of its processes has, without this machine in it."""

"""Tiny trainings with the programs that people train with, and the files that these programs write."""

"""The User-Mode Linux box, for machines whose kernel cannot run the emulated network."""

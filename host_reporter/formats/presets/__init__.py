"""The presets that ship: one module a format, in a room for each kind of program."""

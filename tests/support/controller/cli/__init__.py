"""What the tests of the commands share: a console as a process, and values that pictures are made of."""

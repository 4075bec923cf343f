"""One tiny training a program, which runs in that program's environment and says what its logs should be read as."""

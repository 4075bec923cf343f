"""Named tokens: how they are made and hashed, and the file that says what each allows."""

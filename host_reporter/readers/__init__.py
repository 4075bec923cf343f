"""From the bytes of a log or event file to points of progress."""

"""Request bodies: from bytes to messages, large ones in another process."""

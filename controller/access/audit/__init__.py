"""Who has changed what, in a chain of records that shows every later change of it."""

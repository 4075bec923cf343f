"""From a trigger to a plan in force."""

"""The way from the controller to its switches: how soon rules are there, hostile messages, new certificates."""

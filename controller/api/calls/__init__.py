"""The handlers of the calls, one module for each kind of thing."""

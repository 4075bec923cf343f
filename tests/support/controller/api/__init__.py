"""What the tests of the API share: requests, callers of each role, readers of events, and the API on a socket."""

"""Loads that go on while something else is measured: on the API, on its events, and on the links."""

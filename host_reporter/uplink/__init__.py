"""The connection to the controller: reports go out, plans come in."""

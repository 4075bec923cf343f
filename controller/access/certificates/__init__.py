"""Certificates: how they are made, read, shown and judged, whatever is spoken over TLS."""

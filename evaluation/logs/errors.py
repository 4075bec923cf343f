"""The error of a recording that cannot be made."""

from __future__ import annotations


class RecordingError(Exception):
    """A recording cannot be made; the text says which part failed and what would be right."""

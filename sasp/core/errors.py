"""What can go wrong inside a job, said for people."""

from __future__ import annotations


class SaspError(RuntimeError):
    """The job cannot go on, or cannot be wrapped: the message says what was wrong and what would be right."""


class EndOfStreamError(SaspError):
    """The other end has closed the connection."""

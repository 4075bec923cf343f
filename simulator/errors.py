"""What is wrong with what a person gave: the message says where, what, and what would be right."""

from __future__ import annotations


class InputError(ValueError):
    """Wrong input; the message is for the person who gave it, one line a fault."""

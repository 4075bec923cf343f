"""Cuts bytes into equal parts. Pure."""

from __future__ import annotations


def equal_parts(total: int, count: int) -> tuple[int, ...]:
    """Returns the sizes of ``count`` parts, which are as equal as whole bytes allow and sum to ``total``."""
    return tuple((i + 1) * total // count - i * total // count for i in range(count))

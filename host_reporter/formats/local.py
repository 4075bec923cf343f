"""What of a problem stays on this host: names that stand in an output, which may be anything. Pure."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMES = 20
"""Name so many at most."""

_THERE_ARE = "; there are "


def with_names(problem: str, names: Iterable[str]) -> str:
    """Returns a problem, and after it the names that an output has; for this host alone."""
    return f"{problem}{_THERE_ARE}{', '.join(list(names)[:MOST_NAMES])}"


def with_help(problem: str, helping: str) -> str:
    """Returns a problem with what helps, which stands before the names."""
    reason, there_are, names = problem.partition(_THERE_ARE)
    return f"{reason}{helping}{there_are}{names}"


def without_names(problem: str) -> str:
    """Returns what of a problem may leave this host."""
    return problem.partition(_THERE_ARE)[0]

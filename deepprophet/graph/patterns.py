"""Names of a model's modules by patterns, as ``layers.*``; what is inside a module belongs to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is of this very module. A ``*`` stands for any text without a dot."""
    parts = name.split(".")
    return any(
        len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted))
        for wanted in (pattern.split(".") for pattern in patterns)
    )


def owner(name: str, patterns: Sequence[str]) -> str | None:
    """The outermost module that a pattern is of, and that is this one or has it inside; None: there is none."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        outer = ".".join(parts[:count])
        if matches(outer, patterns):
            return outer
    return None

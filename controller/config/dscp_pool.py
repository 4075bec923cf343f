"""The DSCPs that jobs get for their life, as the settings write them: numbers, and ranges such as 1-47."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from controller.code_points import MOST, local_dscps

_RANGE = re.compile(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*")
_EXAMPLE = "[1-47, 49]"


def as_pool(value: object) -> object:
    """Return the DSCPs of a list of numbers and ranges, each once; raises ValueError for what is none."""
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"it must be a list of DSCPs and ranges, such as {_EXAMPLE}")
    if not value:
        raise ValueError(f"it has no DSCP; name one at least, such as {_EXAMPLE}, or leave it out")
    pool: dict[int, None] = {}
    for entry in value:
        for dscp in _each(entry):
            if dscp in pool:
                raise ValueError(f"DSCP {dscp} is there twice; name each once")
            pool[dscp] = None
    return tuple(pool)


def default_pool(taken: Sequence[int | None]) -> tuple[int, ...]:
    """Returns the DSCPs for local use without those that are ``taken``."""
    return tuple(dscp for dscp in local_dscps() if dscp not in taken)


def _each(entry: object) -> Iterator[int]:
    if isinstance(entry, int) and not isinstance(entry, bool):
        first = last = entry
    elif isinstance(entry, str) and (found := _RANGE.fullmatch(entry)) is not None:
        first, last = int(found[1]), int(found[2])
    else:
        raise ValueError(f"{str(entry)[:40]!r} is neither a DSCP nor a range; write numbers and ranges: {_EXAMPLE}")
    if not 1 <= first <= last <= MOST:
        why = "all traffic has 0 that nobody marks" if first == 0 else f"DSCPs of jobs are 1 to {MOST}, the lower first"
        raise ValueError(f"{entry} is no DSCP or range for jobs: {why}")
    yield from range(first, last + 1)

"""When a rate of bytes that nothing explains is worth saying, and when no more. Pure."""

from __future__ import annotations

from host_reporter.unseen.compare import Rate

FLOOR = 1e6
"""Say nothing of fewer bytes a second: name services, clocks and discovery protocols send as much."""

SHARE = 0.1
"""Say nothing of less than this share of what the interface carries."""

LEAVE = 0.5
"""What was said once is said until the rate is below this share of what it takes to begin."""

ANOTHER = 2.0
"""Say another rate where it differs by such a factor: a sentence whose number changes all the time is not read."""


def judge(said: float | None, rate: Rate) -> float | None:
    """Returns the rate to say, in bytes a second; None: there is nothing to say. ``said`` is what was said before."""
    least = max(FLOOR, SHARE * rate.carried) * (1.0 if said is None else LEAVE)
    if rate.unseen < least:
        return None
    if said is not None and said / ANOTHER <= rate.unseen <= said * ANOTHER:
        return said
    return rate.unseen

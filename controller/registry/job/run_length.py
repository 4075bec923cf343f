"""How long a run is, where its job declares its iterations and where it does not. Pure."""

from __future__ import annotations

UNKNOWN_RUN_ITERATIONS = 100.0
"""Expect a run of unknown length to go on for as many iterations as it has done, and for this many at least."""

MOST_ITERATIONS = 1e9
"""Do not believe that a run of unknown length has done more iterations than this."""

OVERRUN = 2.0
"""Believe progress up to this many times the declared iterations. A point beyond is an error, and believing it once
would end the job's progress."""


def most_iterations(declared: float | None) -> float:
    """Returns the iteration beyond which points are not believed. ``declared`` of None: the length is not known."""
    return MOST_ITERATIONS if declared is None else OVERRUN * declared


def iterations_left(declared: float | None, done: float) -> float:
    """Returns the iterations left of a run that has done so many; see UNKNOWN_RUN_ITERATIONS for those of None."""
    if declared is None:
        return max(done, UNKNOWN_RUN_ITERATIONS)
    return max(declared - done, 0.0)

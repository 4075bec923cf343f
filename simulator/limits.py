"""What the network and the controller of a simulation can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simulator.errors import InputError

MIN_QUANTUM = 1e-6
"""A quantum has at least so many seconds; a finer one would be exact, but for rounding."""

MIN_PLAN_GAP_SECONDS = 1e-3
"""A plan that follows only because time has passed is at least so many seconds after the one before."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the network and the controller can do.

    ``classes``: K, cut from the ordering by the planner; None: a rank for every band. ``period``: the controller's T in
    seconds, beside the plans that are made at once (a job comes or ends, crosses its target); None: control is
    instant, and there is also a plan at every moment from which the policy's order may be another.
    ``rates``: max-min inside a rank, or Varys's MADD. ``quantum``: 0 is exact; else what a flow that ends before the
    last of its step leaves is handed out at multiples of so many seconds only. ``assign``: how K classes are cut.
    ``delay``: seconds from what makes a plan to the plan in force, which takes in all that happens meanwhile; a new job
    is served with the last until then.
    """

    classes: int | None = None
    period: float | None = None
    rates: Literal["maxmin", "madd"] = "maxmin"
    quantum: float = 0.0
    assign: Literal["layered", "top"] = "layered"
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.classes is not None and self.classes < 1:
            raise InputError(f"classes: {self.classes}; it must be at least 1")
        if self.period is not None and not MIN_PLAN_GAP_SECONDS <= self.period < float("inf"):
            raise InputError(
                f"period: {self.period}; it must be a number of at least {MIN_PLAN_GAP_SECONDS:g}, in seconds"
            )
        if not 0 <= self.delay < float("inf"):
            raise InputError(f"delay: {self.delay}; it must be a number of 0 or more, in seconds")
        if self.quantum and not MIN_QUANTUM <= self.quantum < float("inf"):
            raise InputError(f"quantum: {self.quantum}; it must be 0, or at least {MIN_QUANTUM:g}, in seconds")

"""What the runs of a family say of the next one: what a policy gets with a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.families.run import EarlierRun


class Spread(NamedTuple):
    """The median of a value over runs, its lowest and highest, and its standard deviation (0 for one run)."""

    median: float
    low: float
    high: float
    deviation: float


class Gate(NamedTuple):
    """Whether a policy may use a family, and why not. ``error`` and ``prior_error`` are explained in
    ``controller.families.gate``; None: too few runs to tell.
    """

    is_open: bool
    reason: str | None = None
    error: float | None = None
    prior_error: float | None = None


CLOSED = Gate(is_open=False)


@dataclass(frozen=True, slots=True)
class FamilyHistory:
    """The earlier runs of a job's family, and what they say.

    ``runs`` are all that are kept, oldest first, flagged ones too. The statistics are of those alone that finished,
    with the metric of the job: ``counted`` of them. They are None where there is none. ``share_t90`` and ``share_t95``
    are shares of the run, with the standard deviation of their natural logarithms; ``converged`` is in units of the
    metric. A policy uses them only where the ``gate`` is open.
    """

    name: str
    runs: tuple[EarlierRun, ...] = ()
    gate: Gate = CLOSED
    counted: int = 0
    share_t90: Spread | None = None
    share_t95: Spread | None = None
    converged: Spread | None = None

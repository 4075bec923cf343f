"""An earlier run of a family: what is kept of a job when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

MAX_POINTS = 64
"""Keep at most this many points of a run's curve."""


class Ending(StrEnum):
    """How a run ended, as far as the next one is concerned.

    FINISHED: its statistics count. ABORTED: it was stopped before it had converged. DIVERGED: its metric became no
    number. REFUSED: it finished, but its curve says nothing.
    """

    FINISHED = "finished"
    ABORTED = "aborted"
    DIVERGED = "diverged"
    REFUSED = "refused"


class RunKey(NamedTuple):
    """What distinguishes runs: the job's id, and when this run of it was registered, in seconds since the epoch."""

    job: str
    began: float


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """One run. ``length`` is its iterations. ``reason`` says why it does not count; None: it counts (FINISHED).

    ``converged`` is the median of the metric over the last tenth of the run; None where it reported none. ``t90`` and
    ``t95`` are the iterations at which 90 % and 95 % of that were reached (``controller.families.definition``); None:
    never, or the run had not converged.
    ``curve`` has at most ``MAX_POINTS`` pairs of iteration and metric, each metric the running median of three reports.
    """

    job: str
    began: float
    ended_at: float
    ending: Ending
    metric: str
    direction: Literal["max", "min"]
    length: float
    converged: float | None = None
    t90: float | None = None
    t95: float | None = None
    curve: tuple[tuple[float, float], ...] = ()
    reason: str | None = None

    @property
    def key(self) -> RunKey:
        """Returns what distinguishes it from all other runs."""
        return RunKey(self.job, self.began)

    @property
    def counts(self) -> bool:
        """Returns whether it counts in the family's statistics."""
        return self.ending is Ending.FINISHED

    @property
    def share_t90(self) -> float | None:
        """Returns after which share of the run 90 % was reached."""
        return None if self.t90 is None or self.length <= 0 else self.t90 / self.length

    @property
    def share_t95(self) -> float | None:
        """Returns after which share of the run 95 % was reached."""
        return None if self.t95 is None or self.length <= 0 else self.t95 / self.length

    @property
    def gap(self) -> float:
        """Returns the gap that the metric has closed: from 0 if it rises, from its first value if it falls; 0 without
        any metric."""
        if self.converged is None or not self.curve:
            return 0.0
        return abs(self.converged - (0.0 if self.direction == "max" else self.curve[0][1]))

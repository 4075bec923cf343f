"""What one line, row or record says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NUMBERS = ("iteration", "epoch", "epochs", "step", "of", "total", "more")
"""The numbers of a reading that say where the run is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one line says: any part of it; None: the line does not say it.

    ``step`` counts in the epoch where the line or an earlier one names the epoch or ``of``, and in the run otherwise.
    ``iteration`` counts in the run in any case.
    """

    iteration: float | None = None
    """How many iterations of the run are done."""
    epoch: float | None = None
    epochs: float | None = None
    """How many epochs the run has."""
    step: float | None = None
    of: float | None = None
    """How many steps one epoch has."""
    total: float | None = None
    """How many iterations the run has."""
    more: float | None = None
    """How many iterations were done since the line before."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The metrics in the order of the line. A value may be nan or infinite."""
    time: float | None = None
    """When, in seconds since the epoch."""
    diverged: bool = False
    ended: bool = False
    begun: bool = False
    """The program begins here, or goes on from a checkpoint."""
    lasting: bool = False
    """A metric of the validation may be the one of an earlier line."""
    may_be_late: bool = False
    """The epoch is the share of epochs that was done when the line was written, which may be long ago."""

    @property
    def counts(self) -> bool:
        """Whether the line says where the run is."""
        return any(value is not None for value in (self.iteration, self.step, self.epoch, self.more))


def counted(
    counters: Mapping[str, float | None],
    *,
    metrics: Mapping[str, float],
    time: float | None = None,
    diverged: bool = False,
    ended: bool = False,
    begun: bool = False,
    lasting: bool = False,
    may_be_late: bool = False,
) -> Reading:
    """Returns a reading whose NUMBERS come from a mapping."""
    iteration, epoch, epochs, step, of, total, more = (counters.get(name) for name in NUMBERS)
    return Reading(
        iteration, epoch, epochs, step, of, total, more, metrics, time, diverged, ended, begun, lasting, may_be_late
    )

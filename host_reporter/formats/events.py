"""What a job's output says of its progress, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["max", "min"]
"""Whether a larger or a smaller value of a metric is better."""

# What the wire takes (controller.wire); what is beyond is no measurement but an accident.
MAX_ITERATION = 1e15
MAX_METRIC = 1e30
MAX_RUNGS = 100
MAX_TIME = 1e12


@dataclass(frozen=True, slots=True)
class Point:
    """Iterations done, the metric then, and when (seconds since the epoch); None: not said.

    ``diverged``: the line says that the run has diverged.
    """

    iteration: float
    metric: float | None = None
    time: float | None = None
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The job says that it has ended."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The job is in this stage of its study now (None: in none), which lasts until so many iterations are done.

    ``rungs_left`` counts the rungs that follow it; None: that is not known.
    """

    stage: str | None
    until: float | None = None
    rungs_left: int | None = None


@dataclass(frozen=True, slots=True)
class Targeted:
    """The job declares this value of its metric as its target; None: it has none."""

    target: float | None


@dataclass(frozen=True, slots=True)
class Diverged:
    """The job says that its run has diverged."""


@dataclass(frozen=True, slots=True)
class Described:
    """What the output says of the job itself; None: it does not say it.

    ``iterations`` is the length of the run. ``preset`` names the format. ``is_guess``: nothing in the output proves
    that it has this format. ``counts_epochs``: an iteration of the points is an epoch, because the output has no steps.
    """

    metric: str | None = None
    direction: Direction | None = None
    iterations: float | None = None
    preset: str | None = None
    is_guess: bool = False
    counts_epochs: bool = False


Event = Point | Ended | Staged | Targeted | Diverged | Described

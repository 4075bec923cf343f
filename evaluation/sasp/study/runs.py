"""One training of the study as a value, its result, and what identifies it. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

Point = tuple[int, float]
"""An iteration, and the metric of worker 0's parameters after it."""

LOOK_EVERY = 10
"""Iterations between two looks at the parameters."""


@dataclass(frozen=True, slots=True)
class Run:
    """``strength``: of delay compensation; ``leads``: the iterations by which layers are late, front first.

    ``delays``: the file of a recording, as late as which gradients are; empty: every layer is as late as its lead.
    """

    task: str
    arm: str
    optimizer: str
    rate: float
    strength: float
    seed: int
    iterations: int
    workers: int
    leads: tuple[int, ...]
    delays: str = ""

    @property
    def key(self) -> str:
        """As it stands in the record."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Trained:
    """A run, and how its metric went. At a run's full length there is one more point, which is of all gradients."""

    run: Run
    points: tuple[Point, ...]


class Goal(NamedTuple):
    """A training may end after so many iterations, at the ``target`` if there is one, or where nothing is finite."""

    iterations: int
    target: float | None = None

    def is_met(self, points: Sequence[Point]) -> bool:
        """Whether the training may end."""
        if not points:
            return False
        last, metric = points[-1]
        there = self.target is not None and reached(points, self.target) is not None
        return there or last >= self.iterations or not math.isfinite(metric)


def reached(points: Sequence[Point], target: float) -> int | None:
    """The iteration at which a running median of three looks is first ``target`` or more; None: never."""
    for (_, a), (_, b), (iteration, c) in zip(points, points[1:], points[2:], strict=False):
        if sorted((a, b, c))[1] >= target:
            return iteration
    return None


def to_line(trained: Trained) -> str:
    """A line of the record."""
    return json.dumps({"run": asdict(trained.run), "points": trained.points})


def from_line(line: str) -> Trained:
    """Read a line of the record. Raises ValueError, KeyError, TypeError."""
    content = json.loads(line)
    run = Run(**{**content["run"], "leads": tuple(content["run"]["leads"])})
    return Trained(run, tuple((int(iteration), float(metric)) for iteration, metric in content["points"]))

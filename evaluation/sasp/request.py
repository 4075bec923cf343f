"""What the lab of ``scripts/evaluate sasp`` is asked and what it answers, as values that are JSON on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topologies.box.datapath import Datapath

Family = Literal["mlp", "cnn", "transformer"]
FAMILIES: tuple[Family, ...] = ("mlp", "cnn", "transformer")

Point = tuple[float, int, float]
"""Seconds since the start, worker 0's iterations, held-out accuracy of its parameters then."""


def reached(points: Sequence[Point], target: float) -> Point | None:
    """The first point where a running median of three looks is ``target`` or more; None: none is."""
    for (_, _, a), (_, _, b), point in zip(points, points[1:], points[2:], strict=False):
        if sorted((a, b, point[2]))[1] >= target:
            return point
    return None


def name_of(rank: int) -> str:
    """The file of a worker's result."""
    return f"worker{rank}.json"


@dataclass(frozen=True, slots=True)
class Training:
    """One PyTorch job: a parameter server and workers, a host each, kept in step by ``scheme``."""

    family: Family
    scheme: str
    iterations: int
    batch: int
    learning_rate: float

    @property
    def name(self) -> str:
        """As a folder can be called."""
        return f"{self.family}-{self.scheme.replace(':', '')}"


@dataclass(frozen=True, slots=True)
class SaspRequest:
    """Jobs, one after the other, alone on one network with links of ``link_bps``; ``chunk_bytes``: SaSP's."""

    link_bps: float
    seed: int
    workers: int
    trainings: tuple[Training, ...]
    limit_seconds: float
    chunk_bytes: int


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """By the worker's own clock; ``seconds`` from the start to the last iteration's parameters, flushed."""

    rank: int
    iterations: int
    seconds: float
    computing_seconds: float
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One training. ``cpu_idle_share``: of all processors that the lab saw, while it trained."""

    training: Training
    workers: tuple[WorkerResult, ...]
    cpu_idle_share: float

    @property
    def seconds_an_iteration(self) -> float:
        """Of a worker, in the mean, until the last of them is done."""
        done = sum(worker.iterations for worker in self.workers) / len(self.workers)
        return max(worker.seconds for worker in self.workers) / done

    def seconds_until(self, target: float) -> float | None:
        """When worker 0's parameters first had the accuracy ``target``; None: never."""
        point = reached(self.workers[0].points, target)
        return None if point is None else point[0]

    @property
    def last_accuracy(self) -> float:
        """Of the parameters at the end."""
        return self.workers[0].points[-1][2]


@dataclass(frozen=True, slots=True)
class SaspResult:
    """All that a request asked for."""

    datapath: Datapath
    link_bps: float
    seed: int
    torch: str
    arms: tuple[ArmResult, ...]

"""How long workers wait at a barrier for the slowest of them: what a job's workers recorded, and what it adds up to.

A worker of a parameter-server job comes to the barrier of an iteration when it has computed, and pushes; the barrier
opens when the last one has come. Who gets its model late comes late, and all others wait. Where an experiment asks for
it, each worker leaves the moments at which it came, by one clock, the machine's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pvariance

from topologies.trainer.results import write_whole

FOLDER = "barriers"


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """Over the ``barriers`` of a job: the mean wait of a worker in seconds, and the mean of the variance among workers.

    ``variance`` is in seconds squared, of the workers at one barrier.
    """

    barriers: int
    mean_seconds: float
    variance: float


def barrier_file(directory: Path, job: str, rank: int) -> Path:
    """Where a worker's moments are."""
    return directory / FOLDER / job / f"{rank}.json"


def write(directory: Path, job: str, rank: int, moments: Sequence[float]) -> None:
    """Leave a worker's moments, in seconds, one an iteration. Raises OSError."""
    write_whole(barrier_file(directory, job, rank), json.dumps([round(moment, 6) for moment in moments]) + "\n")


def read(directory: Path, job: str, workers: int) -> BarrierWait | None:
    """How the workers of a job, ranks 1 and up, have waited; None: one of them has left nothing.

    Raises ValueError for a file that is none of ours, OSError.
    """
    moments = []
    for rank in range(1, workers + 1):
        path = barrier_file(directory, job, rank)
        if not path.exists():
            return None
        try:
            moments.append([float(moment) for moment in json.loads(path.read_bytes())])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: not a worker's moments: {error}") from error
    return waits(moments)


def waits(moments: Sequence[Sequence[float]]) -> BarrierWait | None:
    """The waits by each worker's moments; None without a barrier that all came to.

    The first is left out where there are more: there a worker's time to connect would count.
    """
    came = [list(at_one) for at_one in zip(*moments, strict=False)]
    came = came[1:] or came
    if not came:
        return None
    return BarrierWait(
        barriers=len(came),
        mean_seconds=fmean(max(at_one) - moment for at_one in came for moment in at_one),
        variance=fmean(pvariance(at_one) for at_one in came),
    )

"""How long workers wait at a barrier for the slowest of them, from the arrival times that they recorded.

A worker of a parameter-server job comes to the barrier of an iteration when it has computed, and then pushes. The
barrier opens when the last worker has come. A worker that gets its model late comes late, and all others wait. In an
experiment with ``barriers``, each worker records when it comes, by the machine's clock.
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
    """The mean wait of a worker in seconds over the ``barriers`` of a job, and the mean variance among its workers.

    The variance is that of the workers at one barrier, in seconds squared.
    """

    barriers: int
    mean_seconds: float
    variance: float


def barrier_file(directory: Path, job: str, rank: int) -> Path:
    """Return the file with a worker's arrival times."""
    return directory / FOLDER / job / f"{rank}.json"


def write(directory: Path, job: str, rank: int, moments: Sequence[float]) -> None:
    """Write a worker's arrival times, in seconds, one an iteration. Raises OSError."""
    write_whole(barrier_file(directory, job, rank), json.dumps([round(moment, 6) for moment in moments]) + "\n")


def read(directory: Path, job: str, workers: int) -> BarrierWait | None:
    """Return how the workers of a job, ranks 1 and up, have waited; None where a worker has left no file.

    Raises ValueError for a file of another format, and OSError.
    """
    moments = []
    for rank in range(1, workers + 1):
        path = barrier_file(directory, job, rank)
        if not path.exists():
            return None
        try:
            moments.append([float(moment) for moment in json.loads(path.read_bytes())])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: not a worker's arrival times: {error}") from error
    return waits(moments)


def waits(moments: Sequence[Sequence[float]]) -> BarrierWait | None:
    """Return the waits from each worker's arrival times; None where there is no barrier that all have reached.

    The first of several barriers does not count, because it includes the time to connect.
    """
    barriers = [list(arrivals) for arrivals in zip(*moments, strict=False)]
    barriers = barriers[1:] or barriers
    if not barriers:
        return None
    return BarrierWait(
        barriers=len(barriers),
        mean_seconds=fmean(max(arrivals) - moment for arrivals in barriers for moment in arrivals),
        variance=fmean(pvariance(arrivals) for arrivals in barriers),
    )

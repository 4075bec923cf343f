"""How long workers wait at a barrier for the slowest of them, from the arrival times that they recorded.

A worker of a parameter-server job comes to the barrier of an iteration when it has computed, and pushes; the barrier
opens when the last one has come. A worker that gets its model late comes late, and all others wait. Where an experiment
asks for it, each worker records when it came, by the machine's clock.
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
    """Return the file with a worker's arrival times."""
    return directory / FOLDER / job / f"{rank}.json"


def write(directory: Path, job: str, rank: int, moments: Sequence[float]) -> None:
    """Write a worker's arrival times, in seconds, one an iteration. Raises OSError."""
    write_whole(barrier_file(directory, job, rank), json.dumps([round(moment, 6) for moment in moments]) + "\n")


def read(directory: Path, job: str, workers: int) -> BarrierWait | None:
    """Return how the workers of a job, ranks 1 and up, have waited; None where one of them has left no file.

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
    """Return the waits from each worker's arrival times; None without a barrier that all came to.

    Where there are more, the first barrier does not count, because it includes the time to connect.
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

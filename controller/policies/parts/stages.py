"""The stages of a snapshot, and the rungs that come after them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from controller.model import Snapshot
from controller.ordering.loads import LoadMatrix, summed

_TRIALS, _LOAD = "trials:", "load:"


class Begun(NamedTuple):
    """How many jobs a stage began with, and for how many seconds one iteration of them all loads its busiest port."""

    trials: int
    seconds: float


def stages(snapshot: Snapshot) -> tuple[list[list[int]], list[str | None]]:
    """Returns the stages as positions of jobs, in the order of their first jobs, and their names.

    The name of a stage that is not declared is None.
    """
    declared = {job: stage.id for stage in snapshot.stages for job in stage.jobs}
    number: dict[tuple[str | None, int], int] = {}
    members: list[list[int]] = []
    names: list[str | None] = []
    for j, job in enumerate(snapshot.jobs):
        stage = declared.get(job.id, job.stage)
        key = (stage, -1) if stage is not None else (None, j)
        if key not in number:
            number[key] = len(members)
            members.append([])
            names.append(stage)
        members[number[key]].append(j)
    return members, names


def merged(left: LoadMatrix, members: Sequence[Sequence[int]]) -> LoadMatrix:
    """Returns one row for each stage: the sum of its jobs' loads at each port."""
    stage_of = np.zeros(left.jobs, dtype=np.int64)
    for number, jobs in enumerate(members):
        stage_of[jobs] = number
    key, where = np.unique(stage_of[left.row_of_entry()] * max(left.ports, 1) + left.port, return_inverse=True)
    start = np.searchsorted(key, np.arange(len(members) + 1) * max(left.ports, 1)).astype(np.int64)
    seconds = summed(where.reshape(-1), left.seconds, len(key))
    return LoadMatrix(start, key % max(left.ports, 1), seconds, left.ports)


def begun(
    members: Sequence[Sequence[int]],
    names: Sequence[str | None],
    one_iteration: LoadMatrix,
    memory: Mapping[str, float],
) -> tuple[list[Begun], dict[str, float]]:
    """Returns what each stage was when it had most jobs, and the memory that says so.

    Jobs that have ended are no longer in a snapshot, so only the memory tells what a rung began with.
    """
    seconds = merged(one_iteration, members).bottlenecks().tolist()
    now = [Begun(len(jobs), busiest) for jobs, busiest in zip(members, seconds, strict=True)]
    most = [stage if name is None else _larger(stage, name, memory) for stage, name in zip(now, names, strict=True)]
    remembered: dict[str, float] = {}
    for name, stage in zip(names, most, strict=True):
        if name is not None:
            remembered |= {f"{_TRIALS}{name}": float(stage.trials), f"{_LOAD}{name}": stage.seconds}
    return most, remembered


def _larger(now: Begun, name: str, memory: Mapping[str, float]) -> Begun:
    trials = int(memory.get(f"{_TRIALS}{name}", 0))
    return now if now.trials >= trials else Begun(trials, memory.get(f"{_LOAD}{name}", now.seconds))


def rungs_to_come(trials: int, eta: float) -> int:
    """Returns how many rungs follow one of so many trials, of which one in ``eta`` goes on each time."""
    # The grain keeps a rounding error from taking a rung away: log 9 / log 3.
    return int(math.log(max(trials, 1)) / math.log(eta) + 1e-9)

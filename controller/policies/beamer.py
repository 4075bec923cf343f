"""Beamer: the jobs of one stage of a hyper-parameter search finish together.

[known] Y. He et al.: Beamer: Stage-Aware Coflow Scheduling to Accelerate Hyper-Parameter Tuning in Deep Learning
Clusters, IEEE TNSM 2022, doi:10.1109/TNSM.2021.3132361: the goal is the time when the last job of a stage ends, because
only then can the tuner choose which trials continue. Ordering by stages is within 20/3 of the optimal mean stage
completion time.

[ours] A stage is one merged coflow: its load at a port is the sum over its live jobs and all iterations that they have
left. BSSI orders the stages, each with weight 1. Within a stage the job with the most time left goes first, because the
slowest job decides when the stage ends. A job without a stage is a stage of its own. For this model (no release times)
BSSI is within 4 times the optimum. Cost: BSSI over the stages, O(n log n) within them.
"""

from __future__ import annotations

import numpy as np

from controller.model import Ordering, Snapshot
from controller.ordering.bssi import bssi
from controller.ordering.loads import LoadMatrix, load_matrix, loads_left, summed
from controller.policies.base import Policy, next_look


class Beamer(Policy):
    """BSSI orders the stages; in a stage the job with the most time left goes first."""

    name = "beamer"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders the stages, then the jobs of each stage."""
        one_iteration = load_matrix(snapshot)
        left = loads_left(snapshot, one_iteration)
        members, names = stages(snapshot)
        stage_loads = merged(left, members)
        stage_seconds = stage_loads.bottlenecks()
        bottlenecks = one_iteration.bottlenecks()
        seconds = [
            job.iterations_left * (job.compute_seconds + bottleneck)
            for job, bottleneck in zip(snapshot.jobs, bottlenecks.tolist(), strict=True)
        ]
        bands: list[tuple[str, ...]] = []
        reasons: dict[str, str] = {}
        for position, stage in enumerate(bssi(stage_loads, np.ones(len(members))).order, 1):
            jobs = sorted(members[stage], key=lambda j: (-seconds[j], snapshot.jobs[j].arrival))
            stage_text = f"stage {names[stage]}" if names[stage] is not None else "a stage of its own"
            stage_text += (
                f", number {position} of {len(members)} so that stages end early on average: "
                f"{stage_seconds[stage]:.4g} s left at its busiest port"
            )
            for rank, j in enumerate(jobs, 1):
                bands.append((snapshot.jobs[j].id,))
                in_stage = f"; {rank} of {len(jobs)} in it by {seconds[j]:.4g} s left (highest goes first)"
                reasons[snapshot.jobs[j].id] = stage_text + (in_stage if len(jobs) > 1 else "")
        return Ordering(self.name, tuple(bands), reasons, until=next_look(snapshot))


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


def merged(left: LoadMatrix, members: list[list[int]]) -> LoadMatrix:
    """Returns one row for each stage: the sum of its jobs' loads at each port."""
    stage_of = np.zeros(left.jobs, dtype=np.int64)
    for number, jobs in enumerate(members):
        stage_of[jobs] = number
    key, where = np.unique(stage_of[left.row_of_entry()] * max(left.ports, 1) + left.port, return_inverse=True)
    start = np.searchsorted(key, np.arange(len(members) + 1) * max(left.ports, 1)).astype(np.int64)
    seconds = summed(where.reshape(-1), left.seconds, len(key))
    return LoadMatrix(start, key % max(left.ports, 1), seconds, left.ports)

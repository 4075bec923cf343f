"""Beamer: the jobs of one stage of a hyper-parameter search finish together.

[known] Y. He et al.: Beamer: Stage-Aware Coflow Scheduling to Accelerate Hyper-Parameter Tuning in Deep Learning
Clusters, IEEE TNSM 2022, doi:10.1109/TNSM.2021.3132361: the goal is the time when the last job of a stage ends, because
only then can the tuner choose which trials continue. Ordering by stages is within 20/3 of the optimal mean stage
completion time.

[ours] A stage is one merged coflow: its load at a port is the sum over its live jobs and all iterations that they have
left. Within a stage the job with the most time left goes first, because the slowest job decides when the stage ends. A
job without a stage is a stage of its own.

[ours] Rungs with a barrier follow each other, so the completion times of a search's rungs add up to the time of the
search, and a search with little to come should go first. So a stage counts with the rungs to come (``horizon``
``study``): the stage goes first whose busiest port is done first with both. The job tells how many rungs there are, or
they are reckoned: of a stage of n trials one in ``eta`` goes on each time. Each rung to come sends as much as this one.
The policy remembers how many trials a stage began with, and what they sent.

With ``horizon`` ``stage`` BSSI orders the stages by what their own jobs send, each with weight 1. For that model (no
release times) it is within 4 times the optimum. Cost: O(n log n), and BSSI over the stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from controller.model import Job, Ordering, Snapshot
from controller.ordering.bssi import bssi
from controller.ordering.loads import Floats, LoadMatrix, load_matrix, loads_left
from controller.policies.base import Policy, next_look
from controller.policies.parts.options import Choice, Number
from controller.policies.parts.stages import begun, merged, rungs_to_come, stages
from controller.quantities import duration

_HORIZON = Choice(("stage", "study"))
_ETA = Number(1.5, 1e3)


class _Ahead(NamedTuple):
    """How many rungs follow each stage, for how many seconds they load their busiest port, and what is remembered."""

    rungs: Sequence[int]
    seconds: Floats
    memory: Mapping[str, float]


class Beamer(Policy):
    """The stage goes first whose search has least to send; in a stage the job with the most time left."""

    name = "beamer"

    def __init__(
        self,
        *,
        horizon: Annotated[
            str,
            _HORIZON,
            "What orders the stages. study: what is left of each with the rungs of its study to come, the least first. "
            "stage: BSSI over what their own jobs have left.",
        ] = "study",
        eta: Annotated[
            float, _ETA, "One trial in so many goes on to the next rung. It counts where no job tells the rungs left."
        ] = 3.0,
    ) -> None:
        self.horizon = _HORIZON.check("horizon", horizon)
        self.eta = _ETA.check("eta", eta)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders the stages, then the jobs of each stage."""
        one_iteration = load_matrix(snapshot)
        members, names = stages(snapshot)
        loads = merged(loads_left(snapshot, one_iteration), members)
        left = loads.bottlenecks()
        if self.horizon == "study":
            ahead = self._ahead(snapshot, one_iteration, members, names, previous.memory if previous else {})
            stage_order = np.argsort(left + ahead.seconds, kind="stable").tolist()
        else:
            ahead = _Ahead([0] * len(members), np.zeros(len(members)), {})
            stage_order = list(bssi(loads, np.ones(len(members))).order)
        seconds = _seconds_left(snapshot, one_iteration)
        bands: list[tuple[str, ...]] = []
        reasons: dict[str, str] = {}
        for position, stage in enumerate(stage_order, 1):
            jobs = sorted(members[stage], key=lambda j: (-seconds[j], snapshot.jobs[j].arrival))
            text = f"stage {names[stage]}" if names[stage] is not None else "a stage of its own"
            text += f", number {position} of {len(members)} so that stages end early on average: "
            text += _left_text(left[stage], ahead.seconds[stage], ahead.rungs[stage])
            for rank, j in enumerate(jobs, 1):
                bands.append((snapshot.jobs[j].id,))
                in_stage = f"; {rank} of {len(jobs)} in it by {duration(seconds[j])} left (highest goes first)"
                reasons[snapshot.jobs[j].id] = text + (in_stage if len(jobs) > 1 else "")
        return Ordering(self.name, tuple(bands), reasons, memory=ahead.memory, until=next_look(snapshot))

    def _ahead(
        self,
        snapshot: Snapshot,
        one_iteration: LoadMatrix,
        members: Sequence[Sequence[int]],
        names: Sequence[str | None],
        memory: Mapping[str, float],
    ) -> _Ahead:
        """Returns what follows each stage. A rung has the iterations of its longest job."""
        began, remembered = begun(members, names, one_iteration, memory)
        rungs: list[int] = []
        seconds: list[float] = []
        for positions, name, stage in zip(members, names, began, strict=True):
            jobs = [snapshot.jobs[j] for j in positions]
            rungs.append(0 if name is None else self._rungs_after(jobs, stage.trials))
            iterations = max(job.iterations_total or job.iterations_left for job in jobs)
            seconds.append(rungs[-1] * iterations * stage.seconds)
        return _Ahead(rungs, np.array(seconds, dtype=float), remembered)

    def _rungs_after(self, jobs: Sequence[Job], trials: int) -> int:
        """Returns how many rungs follow a stage that began with so many trials, as its jobs tell or as is usual."""
        told = [job.rungs_left for job in jobs if job.rungs_left is not None]
        return max(told) if told else rungs_to_come(trials, self.eta)


def _seconds_left(snapshot: Snapshot, one_iteration: LoadMatrix) -> list[float]:
    """Returns how long each job would still take alone on the network."""
    bottlenecks = one_iteration.bottlenecks().tolist()
    return [
        job.iterations_left * (job.compute_seconds + bottleneck)
        for job, bottleneck in zip(snapshot.jobs, bottlenecks, strict=True)
    ]


def _left_text(left: float, ahead: float, rungs: int) -> str:
    text = f"{duration(left)} left at its busiest port"
    return f"{text}, {duration(left + ahead)} with the {rungs} rung{'s' * (rungs > 1)} to come" if rungs else text

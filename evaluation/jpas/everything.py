"""A policy that knows each job's whole curve: what can be won at all. It is for measurements alone, and not installed.

The controller of an arm finds it through the folder ``PLUGIN`` (``PolicyChoice.plugins``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from controller.model import Job, Ordering, Snapshot
from controller.ordering.loads import load_matrix
from controller.policies.base import OptionError, Policy, next_look
from controller.quantities import duration
from simulator.reports.targets import target_iteration

PLUGIN = Path(__file__).with_name("plugin")
"""A folder with the entry point of this policy."""
WEIGHTS = (1.0, 0.05, 0.3)
"""What reaching 90 %, 95 % and the end of the run count: as JPAS counts them for a job whose target it knows."""


class Everything(Policy):
    """A job's index is what it surely reaches for each second of its bottleneck port; the highest goes first.

    ``milestones`` gives, by job, the iterations at which the job reaches 90 % and 95 % of its convergence.
    """

    name = "everything"

    def __init__(self, *, milestones: Mapping[str, Sequence[float]]) -> None:
        self.milestones = {job: tuple(map(float, iterations)) for job, iterations in milestones.items()}

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:  # noqa: ARG002 - it remembers nothing
        """Orders jobs by the seconds of their bottleneck port for each milestone to come."""
        if unknown := [job.id for job in snapshot.jobs if job.id not in self.milestones]:
            raise OptionError(f"milestones: there are none of job {unknown[0]}")
        index = np.array([self._index(job) for job in snapshot.jobs])
        seconds = load_matrix(snapshot).bottlenecks() / index
        arrival = np.array([job.arrival for job in snapshot.jobs])
        return Ordering(
            policy=self.name,
            bands=tuple((snapshot.jobs[j].id,) for j in np.lexsort((arrival, seconds)).tolist()),
            reasons={
                job.id: f"needs {duration(need)} of its busiest port for each milestone (lowest goes first)"
                for job, need in zip(snapshot.jobs, seconds.tolist(), strict=True)
            },
            until=next_look(snapshot),
        )

    def _index(self, job: Job) -> float:
        """Returns the weighted milestones that an iteration brings nearer."""
        ends = (*self.milestones[job.id], job.iterations_done + job.iterations_left)
        left = [end - job.iterations_done for end in ends]
        ahead = [weight / max(need, 1.0) for weight, need in zip(WEIGHTS, left, strict=True) if need > 0]
        return sum(ahead) or WEIGHTS[-1]


def milestones(curves: Mapping[str, Sequence[float]]) -> dict[str, list[int]]:
    """Returns the option: the iterations at which each job's curve reaches 90 % and 95 %, or its last iteration."""
    return {
        job: [target_iteration(curve, fraction) or len(curve) for fraction in (0.90, 0.95)]
        for job, curve in curves.items()
    }

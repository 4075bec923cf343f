"""SEBF (smallest effective bottleneck first) is the order of Varys.

[known] M. Chowdhury, Y. Zhong, I. Stoica: Efficient Coflow Scheduling with Varys, SIGCOMM 2014,
doi:10.1145/2619239.2626315: a coflow's bottleneck is the time that its busiest port needs for what is left of it; the
smallest goes first. The rule looks at each coflow alone, so the first one may delay many others.
 [ours] A training job has all its remaining iterations left, each with its whole demand. Cost O(n log n + z) for z
loads.
"""

from __future__ import annotations

import numpy as np

from controller.model import Ordering, Snapshot
from controller.ordering.loads import load_matrix
from controller.policies.base import Policy, next_look
from controller.quantities import duration


class Sebf(Policy):
    """Jobs go by the seconds that their bottleneck port still needs, the least first; ties go by arrival."""

    name = "sebf"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders jobs by what their bottleneck port still needs."""
        left = np.array([job.iterations_left for job in snapshot.jobs], dtype=float)
        seconds = load_matrix(snapshot).bottlenecks() * left
        arrival = np.array([job.arrival for job in snapshot.jobs], dtype=float)
        order = np.lexsort((arrival, seconds)).tolist()
        return Ordering(
            policy=self.name,
            bands=tuple((snapshot.jobs[j].id,) for j in order),
            reasons={
                job.id: f"its busiest port needs {duration(need)} for what is left (lowest goes first)"
                for job, need in zip(snapshot.jobs, seconds.tolist(), strict=True)
            },
            until=next_look(snapshot),
        )

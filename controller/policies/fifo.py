"""FIFO: the job that was submitted first goes first.

[known] A batch queue has this order; it needs no knowledge of jobs. Cost O(n log n).
"""

from __future__ import annotations

from controller.model import Ordering, Snapshot
from controller.policies.base import DependsOn, Policy
from controller.quantities import duration


class Fifo(Policy):
    """Jobs go by arrival; of equal arrivals the job that the snapshot names first."""

    name = "fifo"
    order_depends_on = DependsOn.ARRIVALS

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders jobs by arrival."""
        jobs = sorted(snapshot.jobs, key=lambda job: job.arrival)
        return Ordering(
            policy=self.name,
            bands=tuple((job.id,) for job in jobs),
            reasons={
                job.id: f"arrived {duration(max(snapshot.now - job.arrival, 0.0))} ago, number {i} of {len(jobs)} "
                "(earliest goes first)"
                for i, job in enumerate(jobs, 1)
            },
        )

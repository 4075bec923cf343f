"""Fair sharing: one class for all jobs, so that TCP shares each link between flows. It is the usual baseline.

[known] A network that knows nothing of jobs does this. Cost O(n).
"""

from __future__ import annotations

from controller.model import Ordering, Snapshot
from controller.policies.base import DependsOn, Policy


class Fair(Policy):
    """All jobs share the network in one band."""

    name = "fair"
    order_depends_on = DependsOn.NOTHING

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Puts all jobs into one band."""
        band = tuple(job.id for job in snapshot.jobs)
        return Ordering(
            policy=self.name,
            bands=(band,) if band else (),
            reasons=dict.fromkeys(band, f"fair sharing: all {len(band)} jobs are in one class, and none goes first"),
        )

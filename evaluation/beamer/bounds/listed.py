"""A policy with a list of all jobs: the order of somebody who knows everything. It is for measurements alone."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Ordering, Snapshot
from controller.policies.base import DependsOn, OptionError, Policy


class Listed(Policy):
    """Jobs go by their ``places``, lowest first; jobs of the same place share the network."""

    name = "listed"
    order_depends_on = DependsOn.DECLARED

    def __init__(self, *, places: Mapping[str, float]) -> None:
        self.places = dict(places)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:  # noqa: ARG002 - it remembers nothing
        """Orders jobs by their places."""
        bands: dict[float, list[str]] = {}
        for job in snapshot.jobs:
            if job.id not in self.places:
                raise OptionError(f"places: there is none of job {job.id}")
            bands.setdefault(self.places[job.id], []).append(job.id)
        return Ordering(
            policy=self.name,
            bands=tuple(tuple(bands[place]) for place in sorted(bands)),
            reasons={
                job.id: f"has place {self.places[job.id]:g} of the list (lowest goes first)" for job in snapshot.jobs
            },
        )

"""The class that each DSCP of a job is served with now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from controller.model import Job


def order_of(jobs: Iterable[Job], classes: Mapping[str, int]) -> dict[int, int]:
    """Returns the class that each DSCP of a job is served with: the best one, where several jobs share it."""
    order: dict[int, int] = {}
    for job in jobs:
        if job.dscp is not None and job.id in classes:
            order[job.dscp] = min(classes[job.id], order.get(job.dscp, classes[job.id]))
    return order


def together(jobs: Sequence[Job], classes: dict[str, int]) -> dict[str, int]:
    """Returns the classes where jobs that share a DSCP have the best of theirs, as no switch tells them apart."""
    order = order_of(jobs, classes)
    if not order:
        return classes
    shared = {job.id: order[job.dscp] for job in jobs if job.dscp is not None and job.id in classes}
    return {**classes, **shared}

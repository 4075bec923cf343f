"""The room for jobs that are registered with one host's token, so that one host leaves room for the others."""

from __future__ import annotations

from collections.abc import Iterable

from controller.declared.declared import Declared
from controller.refusals import Conflict
from controller.registry.job.record import JobRecord

HOST_JOBS = 256
"""Let one host's token have this many jobs at a time, at most."""
HOST_ENTRIES = 65_536
"""Let all these jobs together name this many tasks, demands, and flows or rules of their tasks' ports, at most."""


def make_room(job_id: str, spec: Declared, registrar: str | None, jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """Returns the ended jobs of the same token that give way to a new one, the oldest first.

    ``registrar``: the host whose token it is; None: an operator, who has no share, but all the room. Raises Conflict
    where jobs that run leave too little.
    """
    if registrar is None:
        return []
    own = [job for job in jobs if job.registrar == registrar and job.id != job_id]
    live = [job for job in own if job.ended_at is None]
    remedy = "let some end, remove some, or register it with an operator's token"
    if len(live) >= HOST_JOBS:
        raise Conflict(f"the token of host {registrar} has {HOST_JOBS} jobs already, the most for one; {remedy}")
    size = spec.size + sum(job.spec.size for job in live)
    if size > HOST_ENTRIES:
        raise Conflict(
            f"the jobs of the token of host {registrar} would name {size} tasks, demands and flows; {HOST_ENTRIES} "
            f"is the most for one; {remedy}"
        )
    ended = sorted((job.ended_at, job.id, job) for job in own if job.ended_at is not None)
    excess = size + sum(job.spec.size for _, _, job in ended) - HOST_ENTRIES
    giving_way = []
    for _, _, job in ended:
        if excess <= 0:
            break
        giving_way.append(job)
        excess -= job.spec.size
    return giving_way

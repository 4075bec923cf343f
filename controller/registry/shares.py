"""The room for jobs that are registered with one host's token, so that one host leaves room for the others."""

from __future__ import annotations

from collections.abc import Iterable

from controller.declared.declared import Declared
from controller.declared.parts.host_part import HostPart
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
    jobs = list(jobs)
    size = spec.size + _check(registrar, spec.size, job_id, jobs)
    ended = sorted(
        (job.ended_at, job.id, job)
        for job in jobs
        if job.ended_at is not None and job.registrar == registrar and job.parts is None and job.id != job_id
    )
    excess = size + sum(job.spec.size for _, _, job in ended) - HOST_ENTRIES
    giving_way = []
    for _, _, job in ended:
        if excess <= 0:
            break
        giving_way.append(job)
        excess -= job.spec.size
    return giving_way


def check_share_of_parts(part: HostPart, job: JobRecord | None, jobs: Iterable[JobRecord]) -> None:
    """Raises Conflict where a host's token has no room left for its part in a job; None: in a new job.

    The host pays for its own part and the hosts which that names, not for the parts of others.
    """
    _check(part.host, 1 + len(part.part.hosts), job.id if job is not None else None, jobs)


def _check(host: str, size: int, but: str | None, jobs: Iterable[JobRecord]) -> int:
    """Returns how many entries the running jobs of a host's token have, the job ``but`` left out.

    Raises Conflict where one more with ``size`` entries is too much.
    """
    remedy = "let some end, remove some, or register it with an operator's token"
    live = [entries for job in jobs if job.id != but and (entries := _entries(job, host)) is not None]
    if len(live) >= HOST_JOBS:
        raise Conflict(f"the token of host {host} has {HOST_JOBS} jobs already, the most for one; {remedy}")
    if size + sum(live) > HOST_ENTRIES:
        raise Conflict(
            f"the jobs of the token of host {host} would name {size + sum(live)} tasks, demands and flows; "
            f"{HOST_ENTRIES} is the most for one; {remedy}"
        )
    return sum(live)


def _entries(job: JobRecord, host: str) -> int | None:
    """Returns how many entries of a running job the token of a host has given; None: none, or it does not run."""
    if job.ended_at is not None:
        return None
    if job.parts is None:
        return job.spec.size if job.registrar == host else None
    part = job.parts.get(host)
    return 1 + len(part.part.hosts) if part is not None and part.is_running and part.by_host else None

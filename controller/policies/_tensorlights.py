"""TensorLights: parameter servers that share a host's NIC get priorities there, so that they make no stragglers.

[known, from the released code] X. Huang, A. Chen, T. S. E. Ng: Green, Yellow, Yield: End-Host Traffic Scheduling for
Distributed Deep Learning with TensorLights, HPBDC 2019 (a workshop of IPDPS): seven bands for the jobs whose servers
fan out from a host, the last for all else; of n jobs the one of rank r (from 0) is in band r // ceil(n / 7). TLs-One:
by launch order. TLs-RR: rotated every 20 s. With mixed models the smaller go first, and a rotation stays among equals.
Nothing is done where only one job fans out.

[ours] As an ordering of all jobs for one host's NIC, or (``host`` None) for all of them alike. Who fans out: a job with
a ps task there; where a job declares no tasks, one whose demand goes from there to several hosts. A model's size is
what the server sends one worker in an iteration. A rotation moves each job on by one band among its equals, and is
read off the clock, so nothing is remembered; it shows when a plan is made. Cost O(n log n + flows).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from controller.model import Job, Ordering, Role, Snapshot

BANDS = 7


def fan_out_order(policy: str, snapshot: Snapshot, host: str | None, turn: int | None) -> Ordering:
    """The ordering; ``turn`` is how often it has been rotated (None: never is)."""
    sizes = {job.id: size for job in snapshot.jobs if (size := model_size(job, host)) is not None}
    jobs = sorted((job for job in snapshot.jobs if job.id in sizes), key=lambda job: (sizes[job.id], job.arrival))
    where = f"from {host}" if host is not None else "from its host"
    if len(jobs) < 2:
        band = tuple(job.id for job in snapshot.jobs)
        why = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'} with a fan-out {where}: nothing to order"
        return Ordering(policy, (band,) if band else (), dict.fromkeys(band, why))
    if turn is not None:
        jobs = [job for equal in _equals(jobs, sizes) for job in rotated(equal, turn)]
    width = math.ceil(len(jobs) / BANDS)
    bands = [tuple(job.id for job in jobs[first : first + width]) for first in range(0, len(jobs), width)]
    turned = f", turn {turn}" if turn is not None else ""
    reasons = {
        job.id: f"fans out {where}, {sizes[job.id]:.4g} bytes a worker: rank {rank} of {len(jobs)}{turned}, "
        f"band {rank // width} of {len(bands)}"
        for rank, job in enumerate(jobs)
    }
    if others := tuple(job.id for job in snapshot.jobs if job.id not in sizes):
        bands.append(others)
        reasons |= dict.fromkeys(others, f"no fan-out {where}: the last band, with all else")
    return Ordering(policy, tuple(bands), reasons)


def model_size(job: Job, host: str | None) -> float | None:
    """Bytes that a worker gets of the job's server on ``host`` (None: any) in an iteration; None: no fan-out there."""
    if job.tasks:
        sources = {task.host for task in job.tasks if task.role is Role.PS}
    else:
        receivers: dict[str, set[str]] = {}
        for demand in job.demand:
            if demand.bytes > 0:
                receivers.setdefault(demand.src, set()).add(demand.dst)
        sources = {src for src, reached in receivers.items() if len(reached) > 1}
    if host is not None:
        sources &= {host}
    if not sources:
        return None
    return max((demand.bytes for demand in job.demand if demand.src in sources), default=0.0)


def rotated(jobs: Sequence[Job], turn: int) -> list[Job]:
    """The jobs moved on by ``turn`` bands: who was last comes first."""
    shift = turn * math.ceil(len(jobs) / BANDS) % len(jobs)
    return [*jobs[len(jobs) - shift :], *jobs[: len(jobs) - shift]]


def _equals(jobs: Sequence[Job], sizes: dict[str, float]) -> list[list[Job]]:
    """The jobs in groups of one model size, in the order given."""
    groups: dict[float, list[Job]] = {}
    for job in jobs:
        groups.setdefault(sizes[job.id], []).append(job)
    return list(groups.values())

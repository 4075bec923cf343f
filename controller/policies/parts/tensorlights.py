"""TensorLights: parameter servers that share a host's NIC get priorities there, so that fewer workers are stragglers.

[known, from the released code] X. Huang, A. Chen, T. S. E. Ng: Green, Yellow, Yield: End-Host Traffic Scheduling for
Distributed Deep Learning with TensorLights, HPBDC 2019 (a workshop of IPDPS): there are seven bands for the jobs whose
servers fan out from a host, and a last band for all other traffic. Of n jobs, the job of rank r (from 0) is in band r
// ceil(n / 7). TLs-One ranks jobs by launch; TLs-RR rotates them every 20 s. Smaller models go before larger ones, and
a rotation stays among models of one size. Where only one job fans out, nothing is ordered.

[ours] It is an ordering for one host's NIC or, with ``host`` None, for those of all hosts at once. A job is in the band
of the host that it fans out from; a job that fans out alone is not held back. A job fans out from a host where it has a
ps task or, if it declares no tasks, from which its demand goes to several hosts. A job that does not fan out is in the
last band if it sends from a host whose NIC is ordered, and else is not held back. A model's size is the bytes that the
server sends to one worker in an iteration. A rotation moves each job on by one band among models of its size. The clock
gives the turn, so nothing is remembered. Cost O(n log n), and O(flows) of each job once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.memo import Memo
from controller.model import Demand, Job, Ordering, Role, Snapshot, server_of
from controller.policies.base import OptionError

BANDS = 7
"""Jobs that fan out from a host share this many bands there."""
_REMEMBERED_JOBS = 1024
_Placement = tuple[int, str]
"""The band of a job, and the reason."""


def fan_out_order(policy: str, snapshot: Snapshot, host: str | None, turn: int | None) -> Ordering:
    """Returns the ordering. ``turn`` is how often it has been rotated; None means that it never is.

    Raises OptionError for a host that does not exist.
    """
    servers = dict.fromkeys(known.server for known in snapshot.hosts.values()) if host is not None else {}
    if host is not None and host not in servers:
        known = list(servers)[:10]
        more = ", ..." if len(servers) > len(known) else ""
        raise OptionError(f"host: there is no host {host!r}; there are: {', '.join(known) or 'none'}{more}")
    models = {job.id: model_sizes(job) for job in snapshot.jobs}
    fans: dict[str, dict[str, float]] = {}  # host -> job -> size
    for job_id, sizes in models.items():
        for source, size in sizes.items():
            if host is None or source == host:
                fans.setdefault(source, {})[job_id] = size
    ordered = {source: sizes for source, sizes in fans.items() if len(sizes) > 1}
    if not ordered:
        band = tuple(job.id for job in snapshot.jobs)
        where = f"from {host}" if host is not None else "from any one host"
        why = f"no two jobs send to several hosts {where}, so there is nothing to order"
        return Ordering(policy, (band,) if band else (), dict.fromkeys(band, why))
    placements: dict[str, _Placement] = {}
    for source, sizes in ordered.items():
        for job_id, placement in _placements(snapshot.jobs, source, sizes, turn).items():
            # A job with servers on several hosts is held back by the one where it stands last.
            placements[job_id] = max(placements.get(job_id, placement), placement)
    for job in snapshot.jobs:
        if job.id not in placements:
            placements[job.id] = _other_placement(job, ordered, lone=host is None and bool(models[job.id]))
    bands = [tuple(job.id for job in snapshot.jobs if placements[job.id][0] == number) for number in range(BANDS + 1)]
    return Ordering(policy, tuple(band for band in bands if band), {name: why for name, (_, why) in placements.items()})


def model_sizes(job: Job) -> dict[str, float]:
    """Returns, for each host that the job fans out from, the bytes that a worker gets from it in an iteration."""
    sent = _sent(job)
    if job.tasks:
        sources = {task.host for task in job.tasks if task.role is Role.PS}
    else:
        sources = {source for source, entry in sent.items() if entry.fans_out}
    return {source: sent[source].most if source in sent else 0.0 for source in sorted(sources)}


@dataclass(slots=True)
class _Sent:
    """A job's traffic from a server in an iteration: its first target, the most bytes to one, and if there are more."""

    first: str
    most: float = 0.0
    fans_out: bool = False


_sent_by_demand: Memo[tuple[Demand, ...], dict[str, _Sent]] = Memo(_REMEMBERED_JOBS)


def _sent(job: Job) -> dict[str, _Sent]:
    """Returns what a job sends, by server, over all interfaces."""
    return _sent_by_demand.get(job.demand, lambda: _summed(job.demand))


def _summed(demand: Sequence[Demand]) -> dict[str, _Sent]:
    between: dict[tuple[str, str], float] = {}
    for source, target, size in demand:
        pair = (server_of(source), server_of(target))
        between[pair] = between.get(pair, 0.0) + size
    sent: dict[str, _Sent] = {}
    for (source, target), size in between.items():
        if size > 0:
            entry = sent.setdefault(source, _Sent(target))
            entry.most = max(entry.most, size)
            entry.fans_out |= target != entry.first
    return sent


def rotated(jobs: Sequence[Job], turn: int, width: int) -> list[Job]:
    """Returns the jobs moved on by ``turn`` bands of ``width`` jobs; the last jobs come first.

    When the rotation is back at its start before every job has had every place, it continues from the next place. Else
    two jobs in bands of two would never change.
    """
    places = math.gcd(width, len(jobs))
    rounds = turn // (len(jobs) // places)
    shift = (turn * width + rounds % places) % len(jobs)
    return [*jobs[len(jobs) - shift :], *jobs[: len(jobs) - shift]]


def _placements(
    jobs: Sequence[Job], source: str, sizes: Mapping[str, float], turn: int | None
) -> dict[str, _Placement]:
    """Returns the placement of each job that fans out from ``source``."""
    ranked = sorted((job for job in jobs if job.id in sizes), key=lambda job: (sizes[job.id], job.arrival))
    width = math.ceil(len(ranked) / BANDS)
    if turn is not None:
        ranked = [job for group in _by_size(ranked, sizes) for job in rotated(group, turn, width)]
    rule = "smaller models first, " + ("then by launch" if turn is None else f"equal ones in turns; turn {turn}")
    return {
        job.id: (
            rank // width,
            f"sends {sizes[job.id] / 1e6:.4g} MB to each worker from {source}: "
            f"number {rank + 1} of {len(ranked)} there ({rule})",
        )
        for rank, job in enumerate(ranked)
    }


def _other_placement(job: Job, ordered: Mapping[str, object], *, lone: bool) -> _Placement:
    """Returns the placement of a job that fans out from no host whose NIC is ordered.

    ``lone`` says that it fans out from a host from which no other job does.
    """
    if lone:
        return 0, "sends to its workers from a host where no other job does: not held back"
    source = next((source for source in _sent(job) if source in ordered), None)
    if source is None:
        return 0, "sends from no host where several jobs send to their workers: not held back"
    return BANDS, f"sends from {source}, but not as a parameter server: after the jobs that do"


def _by_size(jobs: Sequence[Job], sizes: Mapping[str, float]) -> list[list[Job]]:
    """Returns the jobs in groups of one model size, in the given order."""
    groups: dict[float, list[Job]] = {}
    for job in jobs:
        groups.setdefault(sizes[job.id], []).append(job)
    return list(groups.values())

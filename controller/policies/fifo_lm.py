"""FIFO-LM: first come, first served; the next job is served beside a heavy one, which thus does not block all others.

[known] F. Dogar, T. Karagiannis, H. Ballani, A. Rowstron: Decentralized Task-Aware Scheduling for Data Center Networks
(Baraat), SIGCOMM 2014, doi:10.1145/2619239.2626322: tasks are served in the order of their arrival, one at a time,
with limited multiplexing: once a task has sent more than the heavy threshold, the 80th percentile of the tasks' sizes,
the next task is served beside it.

[ours] The size of a job is what it has sent and what it has left to send. The percentile is over all jobs that were
ever in a snapshot; each counts once, with its size rounded to two digits. ``heavy_bytes`` sets the threshold instead.
Whether a job is heavy depends on what it has sent, and not on its place in the order. Cost O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from controller.model import BITS_PER_BYTE, Job, Ordering, Snapshot
from controller.ordering.service import sent_bytes
from controller.policies.base import Policy
from controller.policies.parts.options import Number
from controller.quantities import duration

_SIZES = "sizes:"
_COUNTED = "counted:"
_LATE = 0.02
"""Where plans are made only when needed, a job that has become heavy is noticed at most this late. It is a share of the
time since the job arrived, or of the least time in which it can become heavy."""

_PERCENTILE = Number(0.0, 100.0)
_HEAVY_BYTES = Number(0.0, 1e18)


class FifoLm(Policy):
    """Jobs go by arrival, one at a time; once a job is heavy, the next one is served beside it."""

    name = "fifo-lm"

    def __init__(
        self,
        percentile: Annotated[
            float, _PERCENTILE, "A job is heavy above this percentile of the sizes of all jobs."
        ] = 80.0,
        heavy_bytes: Annotated[
            float | None, _HEAVY_BYTES, "A job is heavy above this many bytes; null: by percentile."
        ] = None,
    ) -> None:
        self.percentile = _PERCENTILE.check("percentile", percentile)
        self.heavy_bytes = None if heavy_bytes is None else _HEAVY_BYTES.check("heavy_bytes", heavy_bytes)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders jobs by arrival, with limited multiplexing."""
        memory = _count_sizes(snapshot, previous.memory if previous is not None else {})
        threshold = self.heavy_bytes if self.heavy_bytes is not None else _percentile(memory, self.percentile)
        bands: list[list[str]] = []
        reasons: dict[str, str] = {}
        joins = False
        for job in sorted(snapshot.jobs, key=lambda job: job.arrival):
            if joins:
                reason = f"served beside {bands[-1][-1]}, which came before it and is heavy"
                bands[-1].append(job.id)
            else:
                reason = f"arrived {duration(max(snapshot.now - job.arrival, 0.0))} ago (earliest goes first)"
                bands.append([job.id])
            sent = sent_bytes(job)
            joins = sent > threshold
            reasons[job.id] = f"{reason}; has sent {sent / 1e6:.4g} MB, heavy above {threshold / 1e6:.4g} MB"
        return Ordering(
            self.name,
            tuple(map(tuple, bands)),
            reasons,
            memory=memory,
            until=snapshot.now
            + min((_until_heavy(job, threshold, snapshot) for job in snapshot.jobs), default=math.inf),
        )


def _until_heavy(job: Job, threshold: float, snapshot: Snapshot) -> float:
    """Returns the least seconds until a job can have sent more than the threshold; infinite if it has, or never will.

    Its rate is at most the sum of its senders' rates, and at most the sum of its receivers'.
    """
    left = threshold - sent_bytes(job)
    if left < 0 or _size(job) <= threshold:
        return math.inf
    senders = {demand.src for demand in job.demand}
    receivers = {demand.dst for demand in job.demand}
    rate_bps = min(
        sum(snapshot.hosts[host].egress_bps for host in senders),
        sum(snapshot.hosts[host].ingress_bps for host in receivers),
    )
    soonest = left * BITS_PER_BYTE / rate_bps
    return max(soonest, _LATE * max(snapshot.now - job.arrival, threshold * BITS_PER_BYTE / rate_bps))


def _count_sizes(snapshot: Snapshot, memory: Mapping[str, float]) -> dict[str, float]:
    """Returns how many jobs of each size there were, and which jobs of the snapshot are counted."""
    counts = {key: value for key, value in memory.items() if key.startswith(_SIZES)}
    for job in snapshot.jobs:
        if _COUNTED + job.id not in memory:
            key = f"{_SIZES}{_size(job):.1e}"
            counts[key] = counts.get(key, 0.0) + 1.0
    return {**counts, **{_COUNTED + job.id: 1.0 for job in snapshot.jobs}}


def _size(job: Job) -> float:
    """Returns the bytes that a job sends in all."""
    return sent_bytes(job) + sum(demand.bytes for demand in job.demand) * job.iterations_left


def _percentile(memory: Mapping[str, float], percentile: float) -> float:
    """Returns the least size that ``percentile`` percent of the jobs do not exceed."""
    counts = sorted((float(key.removeprefix(_SIZES)), n) for key, n in memory.items() if key.startswith(_SIZES))
    wanted = sum(n for _, n in counts) * percentile / 100
    seen = 0.0
    for size, n in counts:
        seen += n
        if seen >= wanted:
            return size
    return 0.0

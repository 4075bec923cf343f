"""Attained service: how many seconds of its bottleneck port a job has used so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from controller.loads import Floats
from controller.model import BITS_PER_BYTE, Host, Job, Snapshot, bottleneck_seconds, load_seconds


def attained_seconds(job: Job, hosts: Mapping[str, Host]) -> float:
    """Seconds of its bottleneck port that ``job`` has used: measured, or by its own progress, whichever is more.

    The measured part is what each sending host counted, so a job that never reports gains nothing by silence.
    Only egress is measured; a receiver's port is at least as loaded as progress says.
    """
    return _attained(job, bottleneck_seconds(load_seconds(job, hosts)), hosts)


def attained(snapshot: Snapshot, bottlenecks: Floats) -> Floats:
    """``attained_seconds`` of every job of a snapshot, whose iterations take ``bottlenecks`` seconds of a port."""
    pairs = zip(snapshot.jobs, bottlenecks.tolist(), strict=True)
    return np.array([_attained(job, one, snapshot.hosts) for job, one in pairs], dtype=float)


def sent_bytes(job: Job) -> float:
    """Bytes that a job has sent in all: measured, or by its own progress, whichever is more."""
    one = sum(demand.bytes for demand in job.demand)
    return max(sum(job.sent_bytes.values()), one * job.iterations_done)


def _attained(job: Job, one_iteration: float, hosts: Mapping[str, Host]) -> float:
    measured = max(
        (sent * BITS_PER_BYTE / hosts[host].egress_bps for host, sent in job.sent_bytes.items() if host in hosts),
        default=0.0,
    )
    return max(measured, one_iteration * job.iterations_done)

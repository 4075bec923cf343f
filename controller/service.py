"""Attained service: how many seconds of its bottleneck port a job has used so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller.loads import Floats, load_matrix
from controller.model import BITS_PER_BYTE, Host, Job, Snapshot


def attained(snapshot: Snapshot, bottlenecks: Floats) -> Floats:
    """Seconds of its bottleneck port that each job of a snapshot has used: measured, or by its own progress, whichever
    is more. ``bottlenecks`` are the seconds that an iteration of each takes there.

    The measured part is what each sending host counted, so a job that never reports gains nothing by silence.
    Only egress is measured; a receiver's port is at least as loaded as progress says. Where a link between switches is
    slower than a job's hosts, what it sent took as much longer there.
    """
    longer = np.ones(len(snapshot.jobs))
    if snapshot.routes is not None:
        at_hosts = load_matrix(replace(snapshot, routes=None)).bottlenecks()
        np.divide(bottlenecks, at_hosts, out=longer, where=at_hosts > 0)
    each = zip(snapshot.jobs, bottlenecks.tolist(), longer.tolist(), strict=True)
    return np.array([_attained(job, one, snapshot.hosts, times) for job, one, times in each], dtype=float)


def sent_bytes(job: Job) -> float:
    """Bytes that a job has sent in all: measured, or by its own progress, whichever is more."""
    one = sum(demand.bytes for demand in job.demand)
    return max(sum(job.sent_bytes.values()), one * job.iterations_done)


def _attained(job: Job, one_iteration: float, hosts: Mapping[str, Host], times: float) -> float:
    measured = 0.0
    for host, sent in job.sent_bytes.items():
        known = hosts.get(host)
        if known is not None:
            measured = max(measured, sent * BITS_PER_BYTE / known.egress_bps)
    return max(measured * times, one_iteration * job.iterations_done)

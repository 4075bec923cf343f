"""Attained service: how many seconds of its bottleneck port a job has used so far."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain

import numpy as np

from controller.loads import Floats, load_matrix
from controller.model import BITS_PER_BYTE, Job, Snapshot


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
    by_progress = bottlenecks * np.array([job.iterations_done for job in snapshot.jobs], dtype=float)
    attained_seconds: Floats = np.maximum(_measured(snapshot) * longer, by_progress)
    return attained_seconds


def _measured(snapshot: Snapshot) -> Floats:
    """Seconds of its busiest egress that each job was counted to have used (jobs,)."""
    jobs = snapshot.jobs
    counts = [len(job.sent_bytes) for job in jobs]
    owner = np.repeat(np.arange(len(jobs)), counts)
    sent = np.fromiter(chain.from_iterable(job.sent_bytes.values() for job in jobs), float, len(owner))
    rate = _Rates((name, host.egress_bps) for name, host in snapshot.hosts.items())
    rates = np.fromiter(map(rate.__getitem__, chain.from_iterable(job.sent_bytes for job in jobs)), float, len(owner))
    most = np.zeros(len(jobs))
    np.maximum.at(most, owner, sent * BITS_PER_BYTE / rates)
    return most


class _Rates(dict[str, float]):
    """Of hosts by name, bit/s: at one that is not known any more nothing was used."""

    def __missing__(self, _host: str) -> float:
        return math.inf


def sent_bytes(job: Job) -> float:
    """Bytes that a job has sent in all: measured, or by its own progress, whichever is more."""
    one = sum(demand.bytes for demand in job.demand)
    return max(sum(job.sent_bytes.values()), one * job.iterations_done)

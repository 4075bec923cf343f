"""Attained service: how many seconds of its bottleneck port a job has used so far."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain

import numpy as np

from controller.model import BITS_PER_BYTE, Job, Snapshot
from controller.ordering.loads import Floats, load_matrix


def attained(snapshot: Snapshot, bottlenecks: Floats) -> Floats:
    """Returns the seconds of its bottleneck port that each job of a snapshot has used. Shape (jobs,).

    They are measured, or computed from the job's own progress, whichever is more. ``bottlenecks`` are the seconds that
    an iteration of each job takes there. Each sending host measures its own egress, so a job that never reports gains
    nothing by silence. For a job that no host measures (its agents do not mark, or it has none), only its reports are
    known. It is assumed to have sent as much as possible since its last report, or its arrival, for the same reason. A
    receiver's port is at least as loaded as the progress says. Where a link between switches is slower than a job's
    hosts, the measured seconds are longer there by the same factor.
    """
    longer = np.ones(len(snapshot.jobs))
    if snapshot.routes is not None:
        at_hosts = load_matrix(replace(snapshot, routes=None)).bottlenecks()
        np.divide(bottlenecks, at_hosts, out=longer, where=at_hosts > 0)
    by_progress = bottlenecks * np.array([job.iterations_done for job in snapshot.jobs], dtype=float)
    attained_seconds: Floats = np.maximum(_measured(snapshot) * longer, by_progress + _silent(snapshot, bottlenecks))
    return attained_seconds


def _silent(snapshot: Snapshot, bottlenecks: Floats) -> Floats:
    """Returns the seconds of its bottleneck port that each job may have used since its last report. Shape (jobs,)."""
    seconds = np.zeros(len(snapshot.jobs))
    for i, job in enumerate(snapshot.jobs):
        if not job.is_counted:
            since = job.progress[-1].time if job.progress else job.arrival
            # The job computes and sends at the same time, so the longer of the two limits its iterations.
            iteration = max(float(bottlenecks[i]), job.compute_seconds)
            seconds[i] = max(snapshot.now - since, 0.0) * bottlenecks[i] / iteration if iteration > 0 else 0.0
    return seconds


def _measured(snapshot: Snapshot) -> Floats:
    """Returns the seconds of its busiest egress that each job has used, as measured. Shape (jobs,)."""
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
    """The rates of hosts by name, in bit/s. The rate of an unknown host is infinite, so no time was used there."""

    def __missing__(self, _host: str) -> float:
        return math.inf


def sent_bytes(job: Job) -> float:
    """Returns the bytes that a job has sent in all: measured, or by its own progress, whichever is more."""
    iteration_bytes = sum(demand.bytes for demand in job.demand)
    return max(sum(job.sent_bytes.values()), iteration_bytes * job.iterations_done)

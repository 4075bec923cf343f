"""The least mean completion time that any order at the hosts' links allows. Pure.

A job cannot end sooner than it would alone, whatever the order of its own workers. Between two openings of its barrier
the last worker to get the model waits for all models to leave the server, computes, and pushes. And of the jobs whose
servers share a host, k cannot have ended before all that these k fan out has left the host, which cannot begin before
the first of them has computed and pushed once. So the k-th to end has at least the k-th least of the first bound, and
at least the second. No rates and no order do better; whether one does as well is not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from controller.model import BITS_PER_BYTE
from simulator.network import PAYLOAD_SHARE
from topologies.experiments.experiment import Experiment, JobPlan


def least_mean_jct(experiment: Experiment) -> float:
    """Returns the bound in seconds, for jobs with parameter servers. Cost O(n log n)."""
    rate = experiment.link_bps * PAYLOAD_SHARE / BITS_PER_BYTE
    by_server = sorted(experiment.jobs, key=lambda job: job.hosts[0])
    ends = sum(sum(_least_ends(list(jobs), rate)) for _, jobs in groupby(by_server, key=lambda job: job.hosts[0]))
    return (ends - sum(job.arrival for job in experiment.jobs)) / len(experiment.jobs)


def _least_ends(jobs: Sequence[JobPlan], rate: float) -> list[float]:
    """Returns the least ends of the jobs of one server's host, sorted, in seconds from the experiment's start."""
    alone = sorted(job.arrival + _alone_seconds(job, rate) for job in jobs)
    first = min(job.arrival + job.compute_seconds + _fan_out_seconds(job, rate) for job in jobs)
    sent = sorted(job.iterations * _fan_out_seconds(job, rate) for job in jobs)
    return [max(end, first + sum(sent[: k + 1])) for k, end in enumerate(alone)]


def _alone_seconds(job: JobPlan, rate: float) -> float:
    """Returns the least seconds of a job that has the link for itself."""
    fan_out, push = _fan_out_seconds(job, rate), job.model_bytes / rate
    first, last = job.compute_seconds + fan_out, fan_out
    return first + (job.iterations - 1) * (fan_out + job.compute_seconds + push) + last


def _fan_out_seconds(job: JobPlan, rate: float) -> float:
    """Returns how long a fan-out of the job fills its server's link; its pushes fill the same link as long."""
    return (len(job.hosts) - 1) * job.model_bytes / rate

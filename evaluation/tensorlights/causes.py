"""Waits at barriers, and what makes them, from the results of jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from host_reporter.nic.tensorlights.bands import Server, band_queues
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.results import ArmResult, JobResult
from topologies.trainer.barriers.waits import WaitCauses


def worker_wait(job: JobResult) -> float | None:
    """Returns the mean wait from the moment when a worker has computed; None where it was not recorded."""
    return None if job.barrier is None else job.barrier.mean_seconds


def worker_variance(job: JobResult) -> float | None:
    """Returns the variance among the workers of a barrier of when they have computed."""
    return None if job.barrier is None else job.barrier.variance


def server_wait(job: JobResult) -> float | None:
    """Returns the mean wait from the moment when the server has a worker's push, as TensorLights' authors recorded."""
    return None if job.barrier is None or job.barrier.at_server is None else job.barrier.at_server.mean_seconds


def server_variance(job: JobResult) -> float | None:
    """Returns the variance among the pushes of a barrier of when the server has them."""
    return None if job.barrier is None or job.barrier.at_server is None else job.barrier.at_server.variance


def means(jobs: Sequence[JobResult]) -> dict[str, float | None] | None:
    """Returns what makes workers wait, in the mean of jobs; None where it was not recorded of each."""
    recorded = [known for job in jobs if (known := _causes(job)) is not None]
    if len(recorded) < len(jobs):
        return None
    orders = [each.order for each in recorded if each.order is not None]
    return {
        "models_seconds": fmean(each.models_seconds for each in recorded),
        "late_seconds": fmean(each.late_seconds for each in recorded),
        "fan_out_seconds": fmean(each.fan_out_seconds for each in recorded),
        "order": fmean(orders) if orders else None,
    }


def by_band(runs: Iterable[tuple[Experiment, ArmResult]]) -> list[dict[str, float | None]]:
    """Returns, for each band that jobs have under TLs-One while all of them run, the means over its jobs in any arm."""
    members: dict[int, list[JobResult]] = {}
    for experiment, arm in runs:
        for name, band in bands(experiment).items():
            members.setdefault(band, []).append(arm.jobs[name])
    return [
        {
            "band": band,
            "jct": fmean(job.watched_seconds if job.jct_seconds is None else job.jct_seconds for job in jobs),
            "barrier_wait": mean_of(map(worker_wait, jobs)),
            "server_wait": mean_of(map(server_wait, jobs)),
            "fan_out_seconds": mean_of(map(_fan_out_seconds, jobs)),
        }
        for band, jobs in sorted(members.items())
    ]


def bands(experiment: Experiment) -> Mapping[str, int]:
    """Returns the band of each job under TLs-One while all run; a job whose server is alone on its host has none."""
    by_server = sorted(experiment.jobs, key=lambda job: job.hosts[0])
    queues = [band_queues(list(map(_server, jobs)), None) for _, jobs in groupby(by_server, lambda job: job.hosts[0])]
    return {name: queue.band for host in queues for name, queue in host.items()}


def mean_of(values: Iterable[float | None]) -> float | None:
    """Returns the mean of values; None where one of them is missing, or there are none."""
    known = list(values)
    numbers = [value for value in known if value is not None]
    return fmean(numbers) if numbers and len(numbers) == len(known) else None


def as_text(known: Mapping[str, Any] | None) -> Sequence[str]:
    """Returns the causes of waits as a table shows them."""
    if known is None:
        return ("-",) * 4
    order = "-" if known["order"] is None else f"{known['order']:.2f}"
    return (*(f"{known[name]:.2f}" for name in ("models_seconds", "late_seconds", "fan_out_seconds")), order)


def _server(job: JobPlan) -> Server:
    return Server(job.id, (job.port,), job.model_bytes, job.arrival)


def _causes(job: JobResult) -> WaitCauses | None:
    return None if job.barrier is None else job.barrier.causes


def _fan_out_seconds(job: JobResult) -> float | None:
    known = _causes(job)
    return None if known is None else known.fan_out_seconds

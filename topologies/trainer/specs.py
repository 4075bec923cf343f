"""The spec that a job of an experiment sends to the controller. Pure."""

from __future__ import annotations

from controller.model import Role
from controller.wire import DemandSpec, JobSpec, MetricSpec, TaskSpec
from topologies.experiments.experiment import JobPlan
from topologies.experiments.family_plan import USER
from topologies.trainer.transfers.parts import equal_parts
from topologies.trainer.transfers.ring import sent_chunk


def demand(job: JobPlan) -> tuple[DemandSpec, ...]:
    """Returns the bytes that an iteration sends between each pair of hosts: the trainer's payload without headers."""
    first, others, count = job.hosts[0], job.hosts[1:], len(job.hosts)
    if job.architecture == "ps":
        pairs = [pair for worker in others for pair in ((worker, first), (first, worker))]
        return tuple(DemandSpec(src=src, dst=dst, bytes=job.model_bytes) for src, dst in pairs)
    sizes = equal_parts(job.model_bytes, count)
    return tuple(
        DemandSpec(
            src=host,
            dst=job.hosts[(rank + 1) % count],
            bytes=sum(sizes[sent_chunk(rank, step, count)] for step in range(2 * (count - 1))),
        )
        for rank, host in enumerate(job.hosts)
    )


def job_spec(job: JobPlan, arrival_epoch: float) -> JobSpec:
    """Returns the message that registers ``job``, which arrived at ``arrival_epoch`` (seconds since the epoch).

    A job without a family declares an empty one, so that it does not get its model's.
    """
    if job.architecture == "ps":
        server, *workers = job.hosts
        tasks = (
            TaskSpec(role=Role.PS, host=server, port=job.port),
            *(TaskSpec(role=Role.WORKER, host=host) for host in workers),
        )
    else:
        tasks = tuple(TaskSpec(role=Role.PEER, host=host, port=job.port) for host in job.hosts)
    return JobSpec(
        tasks=tasks,
        demand=demand(job),
        metric=MetricSpec(name="accuracy", direction="max"),
        target=job.target,
        iterations=job.iterations,
        compute_seconds=job.compute_seconds,
        arrival=arrival_epoch,
        model=job.model[:127],
        family=job.family,
        user=USER if job.family else None,
    )

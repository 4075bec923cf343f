"""From an experiment of the lab to the same jobs in the simulator."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Host
from simulator.jobs import SimJob, Workload
from simulator.network import PAYLOAD_SHARE
from simulator.workloads.transfers import barrier_lane, tasks
from topologies.experiments.declaration import Declaration, declared
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import PLAIN, Experiment, JobPlan

_NOTHING: Mapping[str, Declaration] = {}


def workload(experiment: Experiment, declares: Mapping[str, Declaration] = _NOTHING) -> Workload:
    """Returns an experiment on the testbed as a workload. ``declares`` is that of an arm of the lab.

    Links carry ``PAYLOAD_SHARE`` of their rate. Raises ValueError for what the workload would not show: a fabric,
    studies, processors that tasks share, and synchronisation other than a plain barrier. Raises curves.CurveError where
    there is no such curve.
    """
    if experiment.topology != "testbed" or experiment.studies:
        raise ValueError(f"experiment {experiment.name}: it must be on the testbed and have no studies")
    if experiment.processors is not None:
        raise ValueError(f"experiment {experiment.name}: its tasks share processors; in the simulator none do")
    as_declared = declared(experiment, declares)
    rate = experiment.link_bps * PAYLOAD_SHARE
    return Workload(
        name=experiment.name,
        hosts={f"h{i}": Host(f"h{i}", rate, rate) for i in range(1, experiment.hosts + 1)},
        jobs=tuple(_job(job) for job in as_declared.jobs),
        seed=experiment.seed,
        earlier=tuple(map(_earlier, as_declared.earlier)),
    )


def _job(job: JobPlan) -> SimJob:
    if job.scheme != PLAIN:
        raise ValueError(f"job {job.id}: its synchronisation is {job.sync}; it must be bsp")
    return SimJob(
        id=job.id,
        lanes=(barrier_lane(job.architecture, job.hosts, job.model_bytes, job.compute_seconds),),
        arrival=job.arrival,
        iterations=job.iterations,
        curve=job.metrics,
        target=job.target,
        tasks=tasks(job.architecture, job.hosts, job.port),
        family=job.family,
    )


def _earlier(job: EarlierJob) -> SimJob:
    return SimJob(job.id, (), iterations=job.iterations, curve=job.metrics, family=job.family)

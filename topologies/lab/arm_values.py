"""The values of an arm: its jobs by their trainers' own clocks, its controller and its switches."""

from __future__ import annotations

from pathlib import Path

from controller.wire import Status
from simulator.reports.targets import job_times
from topologies.errors import LabError
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.results import Control, JobResult
from topologies.trainer.barriers import files
from topologies.trainer.barriers.waits import BarrierWait, waits
from topologies.trainer.results import done_file, read_result


def job_result(job: JobPlan, results: Path, experiment: Experiment) -> JobResult:
    """Return a job's times by its trainer's own clock.

    Raises LabError where it failed; without a result it is censored.
    """
    path = done_file(results, job.id)
    if not path.exists():
        watched = max(0.0, experiment.limit_seconds - job.arrival)
        return JobResult(None, None, None, censored=True, watched_seconds=watched, history=())
    try:
        result = read_result(path)
        barrier = _barrier_wait(job, results) if experiment.barriers else None
    except ValueError as error:
        raise LabError(str(error)) from error
    if result.failed is not None:
        raise LabError(f"job {job.id} failed: {result.failed}; its log is {results / 'logs' / job.id}.log")
    if job.trial is not None:
        # The job is a part of a run. Its study evaluates the metric.
        return JobResult(None, None, result.jct, result.censored, result.ended, result.history)
    curve = job.metrics
    times = job_times(result.history, curve, result.jct, target=job.target)
    return JobResult(times.t90, times.t95, times.jct, times.censored, result.ended, result.history, barrier)


def _barrier_wait(job: JobPlan, results: Path) -> BarrierWait | None:
    """Returns how the workers of a job have waited; None where a task has left no moments. Raises ValueError."""
    moments = files.read(results, job.id, len(job.hosts) - 1)
    return None if moments is None else waits(moments.workers, moments.server, job.compute_seconds)


def control(status: Status) -> Control:
    """Return what the control loop did, from the controller's status at the end."""
    return Control(
        report_to_rule_count=status.report_to_rule.count,
        report_to_rule_p50=status.report_to_rule.p50_seconds,
        report_to_rule_p99=status.report_to_rule.p99_seconds,
        plans=status.plans,
        flow_mods=status.flow_mods,
        gate_renewals=status.gate_renewals,
    )


def bytes_by_class(before: Status, after: Status, classes: int) -> tuple[int, ...]:
    """Return the bytes that the switches sent between two states, by class, and last all other traffic."""

    def total(status: Status, name: str) -> int:
        return sum(switch.get(name, 0) for switch in status.bytes_by_class.values())

    names = [*(str(k) for k in range(classes)), "other"]
    return tuple(max(0, total(after, name) - total(before, name)) for name in names)

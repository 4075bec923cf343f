"""Solo times: seconds of an iteration of each job alone on the network. No policy can do better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.arm import run_arm
from topologies.lab.results import ArmResult, PolicyChoice

BITS_PER_BYTE = 8
_SLACK = 1.6
_GAP_SECONDS = 7.0
"""Leave a job so many seconds more, because connecting is slow on a busy machine at the start of an arm."""
_FEWEST = 3
"""A job needs this many reports before another may come: two iterations after the first."""


def ideal_iteration_seconds(job: JobPlan, host_bps: float) -> float:
    """Return the seconds of an iteration without overlap: compute time, then the busiest host's transfers.

    ``host_bps`` is the rate of all links of a host together. A parameter server's link carries every worker's push, and
    then every worker's pull; a ring peer's 2 (n-1)/n of the model.
    """
    n = len(job.hosts)
    moved = 2 * (n - 1) * job.model_bytes if job.architecture == "ps" else 2 * (n - 1) / n * job.model_bytes
    return job.compute_seconds + moved * BITS_PER_BYTE / host_bps


def schedule(experiment: Experiment, iterations: int) -> Experiment:
    """Return the same jobs, cut to ``iterations``, so far apart in time that jobs that share a host never overlap.

    Jobs on disjoint hosts run together.
    """
    free: dict[str, float] = {}
    jobs = []
    for job in sorted(experiment.jobs, key=lambda job: job.arrival):
        arrival = max((free.get(host, 0.0) for host in job.hosts), default=0.0)
        count = min(iterations, job.iterations)
        seconds = _SLACK * count * ideal_iteration_seconds(job, experiment.link_bps * experiment.rails) + _GAP_SECONDS
        free |= dict.fromkeys(job.hosts, arrival + seconds)
        jobs.append(job.model_copy(update={"arrival": arrival, "iterations": count}))
    limit = max(free.values()) + 30.0
    return experiment.model_copy(update={"jobs": tuple(jobs), "limit_seconds": limit})


def measure_solo_times(
    emulation: Emulation,
    experiment: Experiment,
    iterations: int,
    *,
    results: Path,
    tick: Callable[[int, float], None],
) -> Mapping[str, float]:
    """Measure the seconds of one iteration of each job alone. Raises LabError where a job overlapped with another."""
    plan = schedule(experiment, iterations)
    arm = run_arm(emulation, plan, PolicyChoice("fair", label="alone"), results=results, tick=tick)
    return {job.id: _iteration_seconds(job, plan, arm) for job in plan.jobs}


def _iteration_seconds(job: JobPlan, plan: Experiment, arm: ArmResult) -> float:
    result = arm.jobs[job.id]
    if result.jct_seconds is None:
        raise LabError(f"job {job.id} did not end when it ran alone; its log is in the folder alone of the results")
    # Points after the arrival of the next job on one of the hosts do not count.
    met = min(
        (o.arrival for o in plan.jobs if o.id != job.id and o.arrival >= job.arrival and set(o.hosts) & set(job.hosts)),
        default=float("inf"),
    )
    solo = [point for point in result.history if job.arrival + point[0] < met]
    if len(solo) < min(_FEWEST, job.iterations):
        raise LabError(
            f"job {job.id} took {result.jct_seconds:.1f} s alone, which is too long: the next job had arrived"
        )
    (first, done, _), (last, total, _) = solo[0], solo[-1]
    # Without the first iteration, which has connecting and slow start in it.
    return (last - first) / (total - done) if total > done else result.jct_seconds / job.iterations

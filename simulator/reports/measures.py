"""What one run means: CCT, JCT, SCT, t90, t95, iteration time, slowdown and link use, in seconds and shares. Pure.

A coflow is one iteration's transfers. A coflow of a trace completes once: its CCT counts from its arrival. A training
job with a barrier has one an iteration: its CCT is the iteration's time less the time that it computes. Where workers
run apart (SSP, ASP) no transfers belong together, so there is no CCT.

t90 and t95 follow ``simulator.reports.targets``: the iteration at which the job's curve gets there, and when that was
done, from the job's arrival. t90 of a job that declares a target is the time to that value. A trial of a study has no
such target: it is measured by its stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.model import BITS_PER_BYTE, Port
from simulator.jobs import Compute, SimJob
from simulator.network import Network
from simulator.outcome import JobOutcome, Outcome
from simulator.reports.timeline import Timeline, timeline

Array = NDArray[np.float64]
TARGETS: Mapping[str, float] = {"t90": 0.90, "t95": 0.95}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job before it runs: its time alone, and the iterations of its targets (None: never)."""

    solo_seconds: float
    targets: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Measures:
    """One run. By job: ``cct`` (mean over its coflows), ``jct``, ``t90``, ``t95`` (None: censored), ``slowdown``.

    By stage: ``sct``. ``ccts`` and ``iteration_seconds`` have one value a coflow and an iteration. ``link_use`` is the
    share of its rate that each port with traffic carried from the first arrival to the last completion.
    A mapping is empty where the measure does not apply.
    """

    policy: str
    cct: Mapping[str, float]
    ccts: Array
    jct: Mapping[str, float]
    t90: Mapping[str, float | None]
    t95: Mapping[str, float | None]
    sct: Mapping[str, float]
    slowdown: Mapping[str, float]
    iteration_seconds: Array
    link_use: Array
    makespan_seconds: float
    wall_seconds: float
    cpu_seconds: float
    plans: int
    iterations: int
    timeline: Timeline | None = None


def is_coflow(job: SimJob) -> bool:
    """Whether a job is a coflow of a trace: it sends once, and that is all."""
    computes = any(isinstance(step, Compute) for lane in job.lanes for step in lane)
    return job.iterations == 1 and job.stage is None and not computes


def measure(jobs: Iterable[SimJob], network: Network, outcome: Outcome, facts: Mapping[str, Facts]) -> Measures:
    """The measures of a run of ``jobs``, which are all that ran, on ``network``. ``facts`` has each job."""
    cct: dict[str, float] = {}
    ccts: list[Array] = []
    jct: dict[str, float] = {}
    slowdown: dict[str, float] = {}
    times: dict[str, dict[str, float | None]] = {name: {} for name in TARGETS}
    stages: dict[str, tuple[float, float]] = {}
    iterations: list[Array] = []
    ran = list(jobs)
    for job in ran:
        job_outcome = outcome.jobs[job.id]
        seconds = _iteration_seconds(job_outcome)
        if is_coflow(job):
            cct[job.id] = job_outcome.end - job_outcome.arrival
            ccts.append(seconds)
        else:
            jct[job.id] = job_outcome.end - job_outcome.arrival
            iterations.append(seconds)
            if len(job.lanes) == 1:
                own = np.maximum(seconds - sum(s.seconds for s in job.lanes[0] if isinstance(s, Compute)), 0.0)
                cct[job.id] = float(own.mean())
                ccts.append(own)
        alone = facts[job.id].solo_seconds
        if alone > 0:
            slowdown[job.id] = (job_outcome.end - job_outcome.arrival) / alone
        for name, iteration in facts[job.id].targets.items():
            times[name][job.id] = None if iteration is None else _done(job_outcome, iteration) - job_outcome.arrival
        if job.stage is not None:
            begin, end = stages.get(job.stage, (job_outcome.arrival, job_outcome.end))
            stages[job.stage] = (min(begin, job_outcome.arrival), max(end, job_outcome.end))
    first = min((job.arrival for job in outcome.jobs.values()), default=0.0)
    makespan = max((job.end for job in outcome.jobs.values()), default=0.0) - first
    return Measures(
        policy=outcome.policy,
        cct=cct,
        ccts=_joined(ccts),
        jct=jct,
        t90=times["t90"],
        t95=times["t95"],
        sct={stage: end - begin for stage, (begin, end) in stages.items()},
        slowdown=slowdown,
        iteration_seconds=_joined(iterations),
        link_use=_link_use(outcome, network, makespan),
        makespan_seconds=makespan,
        wall_seconds=outcome.wall_seconds,
        cpu_seconds=outcome.cpu_seconds,
        plans=outcome.plans,
        iterations=outcome.iterations,
        timeline=_timeline(outcome, network, [job.id for job in ran]),
    )


def _iteration_seconds(job_outcome: JobOutcome) -> Array:
    if len(job_outcome.iteration_ends) == 0:
        return np.array([job_outcome.end - job_outcome.arrival])
    return np.diff(job_outcome.iteration_ends, prepend=job_outcome.arrival)


def _done(job_outcome: JobOutcome, iteration: int) -> float:
    return float(job_outcome.iteration_ends[iteration - 1]) if len(job_outcome.iteration_ends) else job_outcome.end


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0)


def _timeline(outcome: Outcome, network: Network, names: list[str]) -> Timeline | None:
    for port, rows in outcome.timeline.items():
        return timeline(f"{port.host} {port.direction}", _rate_bps(network, port), rows, names)
    return None


def _rate_bps(network: Network, port: Port) -> float:
    return float(network.capacity[network.number[port.host, port.direction]]) * BITS_PER_BYTE


def _link_use(outcome: Outcome, network: Network, makespan: float) -> Array:
    if makespan <= 0:
        return np.zeros(0)
    return np.array(
        [
            size * BITS_PER_BYTE / (_rate_bps(network, port) * makespan)
            for port, size in outcome.port_bytes.items()
            if size > 0
        ]
    )

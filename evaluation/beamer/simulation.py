"""An experiment's studies in the simulator: the same trials on the same hosts, and a chooser in the tuner's place.

On the testbed Optuna draws what accuracies a trial shows; here they are drawn from the same recorded runs by the plan's
seed. So both promote as many trials, but not the same ones. A rung begins when the last trial of the one before has
ended: how long a tuner takes to choose is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import NamedTuple

from controller.model import Host
from controller.policies.base import Policy
from evaluation.beamer.workload import study_of
from simulator.engine import simulate
from simulator.jobs import SimJob, Workload
from simulator.limits import Limits
from simulator.network import PAYLOAD_SHARE
from simulator.outcome import Outcome
from simulator.workloads import curves
from simulator.workloads.transfers import barrier_lane, tasks
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.study_plan import StudyPlan, promoted, stage_name


class Rung(NamedTuple):
    """A rung of a bracket in the simulator: its stage, the iterations of a trial that leaves it, and its jobs."""

    stage: str
    until: int
    jobs: tuple[SimJob, ...]


@dataclass(frozen=True, slots=True)
class SimStudies:
    """An experiment as a workload. ``brackets`` has the rungs of each, by the name of its plan; ``best`` their winners.

    ``best`` gives the job after which the study's best trial is trained, by the study's name.
    """

    workload: Workload
    brackets: Mapping[str, tuple[Rung, ...]]
    best: Mapping[str, str]
    arrivals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Times:
    """Means of one run, in seconds: the stage completion time, that of each rung, and the time to the best trial.

    ``rungs`` are by the iterations of a trial that leaves the rung. A bound has the first alone.
    """

    sct: float
    rungs: Mapping[int, float] = field(default_factory=dict)
    best: float | None = None


def studies(experiment: Experiment) -> SimStudies:
    """Returns the studies of an experiment on the testbed. Links carry ``PAYLOAD_SHARE`` of their rate."""
    jobs = {
        (job.trial.study, job.trial.number, job.trial.rung): job for job in experiment.jobs if job.trial is not None
    }
    brackets: dict[str, tuple[Rung, ...]] = {}
    winners: dict[str, list[tuple[float, str]]] = {}
    arrivals: dict[str, float] = {}
    for plan in experiment.studies:
        brackets[plan.name] = tuple(_rungs(plan, jobs))
        # Of a rung the first trial that is as good as any.
        ended = max(brackets[plan.name][-1].jobs, key=lambda job: job.curve[-1])
        study = study_of(plan.name)
        winners.setdefault(study, []).append((ended.curve[-1], ended.id))
        arrivals[study] = plan.arrival
    rate = experiment.link_bps * PAYLOAD_SHARE
    workload = Workload(
        name=experiment.name,
        hosts={f"h{i}": Host(f"h{i}", rate, rate) for i in range(1, experiment.hosts + 1)},
        jobs=tuple(job for rungs in brackets.values() for rung in rungs for job in rung.jobs),
        seed=experiment.seed,
        stages={rung.stage: tuple(job.id for job in rung.jobs) for rungs in brackets.values() for rung in rungs},
    )
    best = {study: max(ends, key=lambda end: end[0])[1] for study, ends in winners.items()}
    return SimStudies(workload, brackets, best, arrivals)


def run(sim: SimStudies, policy: Policy, limits: Limits) -> Times:
    """Simulates the studies under a policy."""
    return times(sim, simulate(sim.workload, policy, limits))


def times(sim: SimStudies, outcome: Outcome) -> Times:
    """Returns the means of a run. A stage counts from its first job's arrival to its last job's end."""
    jobs = outcome.jobs
    by_rung: dict[int, list[float]] = {}
    for rung in (rung for rungs in sim.brackets.values() for rung in rungs):
        ends = [jobs[job.id].end for job in rung.jobs]
        by_rung.setdefault(rung.until, []).append(max(ends) - min(jobs[job.id].arrival for job in rung.jobs))
    return Times(
        sct=fmean(seconds for rung in by_rung.values() for seconds in rung),
        rungs={until: fmean(by_rung[until]) for until in sorted(by_rung)},
        best=fmean(jobs[job].end - sim.arrivals[study] for study, job in sim.best.items()),
    )


def _rungs(plan: StudyPlan, jobs: Mapping[tuple[str, int, int], JobPlan]) -> Iterator[Rung]:
    random = Random(f"trainyard trials {plan.seed}")  # noqa: S311 - to be repeated
    shown = [_run(random.choice(plan.configurations), plan.rungs[-1]) for _ in range(plan.trials)]
    running: Sequence[int] = range(plan.trials)
    after: tuple[str, ...] = ()
    for rung, until in enumerate(plan.rungs):
        stage = f"{plan.name}.{stage_name(rung)}"
        made = tuple(
            replace(
                _job(jobs[plan.name, n, rung], stage, plan.arrival, after, shown[n][plan.begin(rung) : until]),
                rungs_left=len(plan.rungs) - 1 - rung,
            )
            for n in running
        )
        yield Rung(stage, until, made)
        after = tuple(job.id for job in made)
        if rung + 1 < len(plan.rungs):
            running = promoted({n: shown[n][until - 1] for n in running}, plan.sizes[rung + 1])


def _run(configuration: str, iterations: int) -> tuple[float, ...]:
    return curves.replay(curves.load(configuration), iterations)


def _job(job: JobPlan, stage: str, arrival: float, after: tuple[str, ...], curve: tuple[float, ...]) -> SimJob:
    return SimJob(
        id=job.id,
        lanes=(barrier_lane(job.architecture, job.hosts, job.model_bytes, job.compute_seconds),),
        arrival=arrival,
        iterations=job.iterations,
        after=after,
        stage=stage,
        curve=curve,
        tasks=tasks(job.architecture, job.hosts, job.port),
        model=job.model,
    )

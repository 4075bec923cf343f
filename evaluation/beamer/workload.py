"""The studies of the claim ``beamer``: several searches by successive halving, which share thirteen hosts.

Studies arrive one after the other while those before still run. All trials of a study train the same model of the table
in one architecture, with two to four workers (ring: three to five peers) on hosts at random, and each computes longer
or shorter than its model, as batch sizes and widths differ; the same mix as the simulator's studies
(``simulator.workloads.study``). A trial keeps its hosts from rung to rung. What accuracies it shows is a recorded
training run of those that no policy was designed on. A study with several brackets (``evaluation.beamer.kinds``) is a
plan for each of them, which begin together.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from evaluation.beamer.kinds import ETA, Kind
from simulator.workloads import curves, models
from simulator.workloads.curves import Use
from simulator.workloads.study import COMPUTE_RANGE
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.study_plan import StudyPlan, TrialPlan
from topologies.experiments.workload import FIRST_PORT, LINK_BPS, PERIOD_SECONDS, Architecture, communication_seconds

HOSTS = 13
WORKERS = (2, 4)
ITERATION_SECONDS = (0.6, 1.0)
"""Of a trial of three workers alone; no trial's is under ``workload.SHORTEST_ITERATION``, or the emulator's processor
would be measured."""
LIMIT_SECONDS = 600.0


def experiment(kind: Kind, seed: int, *, use: Use = "claim") -> Experiment:
    """Returns the studies, and a job for every trial in every rung. All that is random comes from the seed.

    Trials show recorded runs of the half ``use``.
    """
    random = Random(f"trainyard beamer {kind.salt}{seed}")  # noqa: S311 - to be repeated
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    recorded = tuple(curves.names(use))
    plans: list[StudyPlan] = []
    jobs: list[JobPlan] = []
    arrival = 0.0
    for number in range(1, kind.studies + 1):
        brackets = [
            StudyPlan(
                name=f"study{number}" if len(kind.brackets) == 1 else f"study{number}-{bracket}",
                arrival=round(arrival, 3),
                trials=trials,
                rungs=rungs,
                eta=ETA,
                configurations=tuple(sorted(random.sample(recorded, min(2 * trials, len(recorded))))),
                seed=random.randrange(2**31),
            )
            for bracket, (trials, rungs) in enumerate(kind.brackets)
        ]
        plans += brackets
        training = _draw_training(random)
        for plan in brackets:
            jobs += _jobs(random, plan, training, names, FIRST_PORT + len(jobs))
        arrival += random.expovariate(1 / kind.gap_seconds)
    return Experiment(
        name=f"{kind.name}-{seed}",
        seed=seed,
        hosts=HOSTS,
        link_bps=LINK_BPS,
        jobs=tuple(jobs),
        limit_seconds=LIMIT_SECONDS,
        period_seconds=PERIOD_SECONDS,
        studies=tuple(plans),
    )


def study_of(plan: str) -> str:
    """Returns the study of a bracket's plan."""
    return plan.partition("-")[0]


class _Training(NamedTuple):
    """What all trials of a study train. ``scale``: of the model's bytes and compute time on the testbed."""

    model: models.ScaledModel
    architecture: Architecture
    scale: float


def _draw_training(random: Random) -> _Training:
    model = models.scaled(random.choice(models.MODELS), LINK_BPS)
    architecture: Architecture = random.choice(("ps", "ring"))
    # Bytes and compute time shrink or grow together, so the share that is communication stays the model's own.
    usual = 1 + round(sum(WORKERS) / 2)
    full = model.compute_seconds + communication_seconds(architecture, usual, model.model_bytes, LINK_BPS)
    return _Training(model, architecture, random.uniform(*ITERATION_SECONDS) / full)


def _jobs(random: Random, plan: StudyPlan, training: _Training, names: list[str], port: int) -> list[JobPlan]:
    """A bracket's jobs, with a port each from ``port`` on."""
    model, architecture, scale = training
    made: list[JobPlan] = []
    for number in range(plan.trials):
        hosts = tuple(random.sample(names, 1 + random.randint(*WORKERS)))
        compute = model.compute_seconds * scale * random.uniform(*COMPUTE_RANGE)
        for rung in range(len(plan.rungs)):
            made.append(
                JobPlan(
                    id=f"{plan.name}.t{number}.r{rung}",
                    arrival=0.0,
                    architecture=architecture,
                    hosts=hosts,
                    port=port + len(made),
                    model=model.name,
                    model_bytes=max(1, round(model.model_bytes * scale)),
                    compute_seconds=round(compute, 4),
                    iterations=plan.length(rung),
                    curve=plan.configurations[0],
                    trial=TrialPlan(study=plan.name, number=number, rung=rung),
                )
            )
    return made

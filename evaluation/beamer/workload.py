"""The studies of the claim ``beamer``: several searches by successive halving, which share thirteen hosts.

Four studies of nine trials each, which arrive one after the other while those before still run; of nine trials three go
on, and of three one. All trials of a study train the same model of the table in one architecture, with two to four
workers (ring: three to five peers) on hosts at random, and each computes longer or shorter than its model, as batch
sizes and widths differ; the same mix as the simulator's studies (``simulator.workloads.study``). A trial keeps its
hosts from rung to rung. What accuracies it shows is a recorded training run of those that no policy was designed on.
"""

from __future__ import annotations

from random import Random

from simulator.workloads import curves, models
from simulator.workloads.study import COMPUTE_RANGE
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.study_plan import StudyPlan, TrialPlan
from topologies.experiments.workload import FIRST_PORT, LINK_BPS, PERIOD_SECONDS, Architecture, communication_seconds

HOSTS = 13
STUDIES = 4
TRIALS, ETA = 9, 3
RUNGS = (6, 18, 54)
WORKERS = (2, 4)
MEAN_GAP_SECONDS = 4.0
ITERATION_SECONDS = (0.6, 1.0)
"""Of a trial of three workers alone; no trial's is under ``workload.SHORTEST_ITERATION``, or the emulator's processor
would be measured."""
LIMIT_SECONDS = 600.0


def experiment(seed: int, studies: int = STUDIES, rungs: tuple[int, ...] = RUNGS) -> Experiment:
    """The studies, and a job for every trial in every rung. All that is random comes from the seed."""
    random = Random(f"trainyard beamer {seed}")  # noqa: S311 - to be repeated
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    recorded = tuple(curves.names("claim"))
    plans: list[StudyPlan] = []
    jobs: list[JobPlan] = []
    arrival = 0.0
    for number in range(1, studies + 1):
        plan = StudyPlan(
            name=f"study{number}",
            arrival=round(arrival, 3),
            trials=TRIALS,
            rungs=rungs,
            eta=ETA,
            configurations=tuple(sorted(random.sample(recorded, 2 * TRIALS))),
            seed=random.randrange(2**31),
        )
        plans.append(plan)
        jobs += _jobs(random, plan, names, FIRST_PORT + len(jobs))
        arrival += random.expovariate(1 / MEAN_GAP_SECONDS)
    return Experiment(
        name=f"studies-{seed}",
        seed=seed,
        hosts=HOSTS,
        link_bps=LINK_BPS,
        jobs=tuple(jobs),
        limit_seconds=LIMIT_SECONDS,
        period_seconds=PERIOD_SECONDS,
        studies=tuple(plans),
    )


def _jobs(random: Random, plan: StudyPlan, names: list[str], port: int) -> list[JobPlan]:
    """A study's jobs, with a port each from ``port`` on."""
    model = models.scaled(random.choice(models.MODELS), LINK_BPS)
    architecture: Architecture = random.choice(("ps", "ring"))
    # Bytes and compute time shrink or grow together, so the share that is communication stays the model's own.
    usual = 1 + round(sum(WORKERS) / 2)
    full = model.compute_seconds + communication_seconds(architecture, usual, model.model_bytes, LINK_BPS)
    scale = random.uniform(*ITERATION_SECONDS) / full
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

"""Random workloads of training jobs on the testbed: the generator and the three loads of the measured claims.

Everything random comes from one seed, so the arms of a comparison run the same jobs. The generator and the three
loads were committed before JPAS first ran on the testbed; the loads were chosen by how much fair sharing slows jobs
down. Later the links' rate (100, then 25, now 10 Mbit/s), the shortest iteration and the controller's period were
changed, so that the network is measured and not the emulator's processor (decision 6): bytes follow the rate, so an
ideal network would give the same times. The last of these changes was made after JPAS had run here, because testbed and
simulator disagreed. The learning curves are from the half that no policy was designed on, and so are the seeds
(``evaluation.jpas.claim``), which were new after every change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from controller.model import BITS_PER_BYTE
from simulator.workloads import curves, models
from topologies.experiments.experiment import Experiment, JobPlan

Architecture = Literal["ps", "ring"]
Draw = Callable[[Random], tuple[str | tuple[float, ...], int]]
"""Draws the curve of the next job, by its name or as rows, and the number of its rows."""
FIRST_PORT = 20000
WORKERS = (4, 8)
LINK_BPS = 10e6
ALONE_SECONDS = (20.0, 40.0)
SHORTEST_ITERATION = 0.4
"""An iteration alone takes at least this many seconds. Shorter ones would measure the emulated hosts' processors."""
PERIOD_SECONDS = 2.0
"""The controller's T is a tenth of the shortest job, since planning uses the processor that emulates the network."""


@dataclass(frozen=True, slots=True)
class Load:
    """The number of jobs, and the mean of the exponential gaps between their arrivals in seconds."""

    name: str
    jobs: int
    mean_gap_seconds: float


DEMO = Load("demo", jobs=8, mean_gap_seconds=2.0)
LIGHT = Load("light", jobs=8, mean_gap_seconds=4.0)
MIDDLE = Load("middle", jobs=16, mean_gap_seconds=1.75)
HEAVY = Load("heavy", jobs=24, mean_gap_seconds=1.0)
LOADS = {load.name: load for load in (LIGHT, MIDDLE, HEAVY)}


def draw_recorded(random: Random) -> tuple[str, int]:
    """Draws one of the recorded curves that no policy was designed on."""
    return random.choice(sorted((curve.name, curve.iterations) for curve in curves.index() if curve.use == "claim"))


def generate(
    load: Load,
    seed: int,
    *,
    draw: Draw = draw_recorded,
    hosts: int = 13,
    link_bps: float = LINK_BPS,
    limit_seconds: float = 600.0,
    period_seconds: float = PERIOD_SECONDS,
) -> Experiment:
    """Returns an experiment of ``load`` with Poisson arrivals.

    Each job has a random model from the table, and a parameter server or a ring with equal chance. It has 4 to 8
    workers (of a ring: peers) on random hosts, and the curve that ``draw`` gives. Each row of the curve is an
    iteration, unless these would be shorter than 0.4 s; then there are as many iterations as take 0.4 s each.

    Alone on the network a job takes 20 to 40 s, uniformly. The bytes and the compute time of its model shrink to that
    by the same factor, so communication keeps the model's share of an iteration.
    """
    random = Random(f"trainyard workload {load.name} {seed}")  # noqa: S311 - a seed must repeat the experiment
    names = [f"h{i}" for i in range(1, hosts + 1)]
    arrival, jobs = 0.0, []
    for number in range(load.jobs):
        model = models.scaled(random.choice(models.MODELS), link_bps)
        architecture: Architecture = random.choice(("ps", "ring"))
        workers = random.randint(*WORKERS)
        placed = tuple(random.sample(names, workers + 1 if architecture == "ps" else workers))
        curve, rows = draw(random)
        total = random.uniform(*ALONE_SECONDS)
        iterations = iterations_of(rows, total)
        seconds = total / iterations
        full = model.compute_seconds + communication_seconds(architecture, len(placed), model.model_bytes, link_bps)
        jobs.append(
            JobPlan(
                id=f"job{number + 1:02d}-{model.name}",
                arrival=round(arrival, 3),
                architecture=architecture,
                hosts=placed,
                port=FIRST_PORT + number,
                model=model.name,
                model_bytes=round(model.model_bytes * seconds / full),
                compute_seconds=round(model.compute_seconds * seconds / full, 4),
                iterations=iterations,
                curve=curve,
            )
        )
        arrival += random.expovariate(1 / load.mean_gap_seconds)
    return Experiment(
        name=f"{load.name}-{seed}",
        seed=seed,
        hosts=hosts,
        link_bps=link_bps,
        jobs=tuple(jobs),
        limit_seconds=limit_seconds,
        period_seconds=period_seconds,
    )


def iterations_of(rows: int, alone_seconds: float) -> int:
    """Returns the iterations of a job that takes so long alone: one for each row of its curve, or as many as fit."""
    return min(rows, int(alone_seconds / SHORTEST_ITERATION))


def communication_seconds(architecture: Architecture, hosts: int, model_bytes: float, link_bps: float) -> float:
    """Returns the seconds of an iteration's transfers alone: the load of the busiest link, push and pull in turn."""
    transfer = model_bytes * BITS_PER_BYTE / link_bps
    return 2 * (hosts - 1) * transfer if architecture == "ps" else 2 * (hosts - 1) / hosts * transfer

"""Random workloads of training jobs on the testbed: the generator and the three loads of the measured claims.

Everything random comes from one seed, so arms that are to be compared run the same jobs. The generator and the three
loads were committed before JPAS first ran on the testbed; the loads were chosen by how much fair sharing slows jobs
down. Later the links' rate (100, then 25, now 10 Mbit/s), the shortest iteration and the controller's period were
changed, so that the network is measured and not the emulator's processor (decision 6): bytes follow the rate, so an
ideal network would give the same times. The last of these changes was made after JPAS had run here, because testbed and
simulator disagreed. The learning curves are from the half that no policy was designed on, and so are the seeds
(``evaluation.jpas.claim``), which were new after every change.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from controller.model import BITS_PER_BYTE
from simulator.workloads import curves, models
from topologies.experiments.experiment import Experiment, JobPlan

Architecture = Literal["ps", "ring"]
FIRST_PORT = 20000
WORKERS = (4, 8)
LINK_BPS = 10e6
ALONE_SECONDS = (20.0, 40.0)
SHORTEST_ITERATION = 0.4
"""Seconds of an iteration alone: below it the emulated hosts' processors would be measured, not the network."""
PERIOD_SECONDS = 2.0
"""The controller's T: a tenth of the shortest job. Each plan costs the processor that also carries the network."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs arrive, and the mean of the exponential gaps between them in seconds."""

    name: str
    jobs: int
    mean_gap_seconds: float


DEMO = Load("demo", jobs=8, mean_gap_seconds=2.0)
LIGHT = Load("light", jobs=8, mean_gap_seconds=4.0)
MIDDLE = Load("middle", jobs=16, mean_gap_seconds=1.75)
HEAVY = Load("heavy", jobs=24, mean_gap_seconds=1.0)
LOADS = {load.name: load for load in (LIGHT, MIDDLE, HEAVY)}


def generate(
    load: Load,
    seed: int,
    *,
    hosts: int = 13,
    link_bps: float = LINK_BPS,
    limit_seconds: float = 600.0,
    period_seconds: float = PERIOD_SECONDS,
) -> Experiment:
    """An experiment of ``load``: Poisson arrivals; a model from the table; parameter server or ring with equal chance;
    4 to 8 workers (ring: peers) on hosts at random; a recorded curve at random, each row an iteration, or spread over
    as many iterations as take 0.4 s each.

    Alone on the network a job takes 20 to 40 s, evenly: bytes and compute time of its model shrink together to that, so
    the share of an iteration that is communication stays the model's own.
    """
    random = Random(f"trainyard workload {load.name} {seed}")  # noqa: S311 - an experiment, to be repeated from its seed
    names = [f"h{i}" for i in range(1, hosts + 1)]
    recorded = {curve.name: curve.iterations for curve in curves.index() if curve.use == "claim"}
    arrival, jobs = 0.0, []
    for number in range(load.jobs):
        model = models.scaled(random.choice(models.MODELS), link_bps)
        architecture: Architecture = random.choice(("ps", "ring"))
        workers = random.randint(*WORKERS)
        placed = tuple(random.sample(names, workers + 1 if architecture == "ps" else workers))
        curve, rows = random.choice(sorted(recorded.items()))
        total = random.uniform(*ALONE_SECONDS)
        iterations = min(rows, int(total / SHORTEST_ITERATION))
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


def communication_seconds(architecture: Architecture, hosts: int, model_bytes: float, link_bps: float) -> float:
    """Seconds that one iteration's transfers take alone: the load of the busiest link, push and pull in turn."""
    transfer = model_bytes * BITS_PER_BYTE / link_bps
    return 2 * (hosts - 1) * transfer if architecture == "ps" else 2 * (hosts - 1) / hosts * transfer

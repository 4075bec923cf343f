"""Random workloads of real PyTorch trainings: which models, how large, where and when. Pure.

Sizes, link and lengths are such that the network is the bottleneck: an iteration's gradients take 0.35 to 0.5 s of a
link of 10 Mbit/s, computing a small part of that. Learning rates, batches and lengths were chosen by training in one
process, on another seed, so that all learn the task and the 90 % lie anywhere from a fifth to two thirds of a run;
that was before any policy ran them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from controller.model import BITS_PER_BYTE
from evaluation.real.job import Model, RealJob

LINK_BPS = 10e6
ITERATION_SECONDS = (0.35, 0.5)
_PARAMETER_BYTES = 4
_LEARNING_RATES: dict[Model, tuple[float, float]] = {"mlp": (0.02, 0.3), "cnn": (0.04, 0.2)}
_BATCHES: dict[Model, tuple[int, ...]] = {"mlp": (16, 32, 64), "cnn": (8, 16)}


@dataclass(frozen=True, slots=True)
class Shape:
    """How many jobs and hosts there are; ranks a job and iterations a job from and to; mean seconds to the next job."""

    jobs: int
    hosts: int
    ranks: tuple[int, int]
    iterations: tuple[int, int]
    mean_gap_seconds: float


FULL = Shape(jobs=6, hosts=6, ranks=(2, 4), iterations=(70, 140), mean_gap_seconds=4.0)
QUICK = Shape(jobs=3, hosts=3, ranks=(2, 3), iterations=(30, 45), mean_gap_seconds=2.0)


def generate(shape: Shape, seed: int) -> tuple[RealJob, ...]:
    """The jobs of a seed, by arrival; the first arrives at 0."""
    random = Random(f"trainyard real {seed}")  # noqa: S311 - an experiment, to be repeated from its seed
    names = [f"h{i}" for i in range(1, shape.hosts + 1)]
    arrival, jobs = 0.0, []
    for number in range(1, shape.jobs + 1):
        model: Model = random.choice(("mlp", "cnn"))
        ranks = random.randint(*shape.ranks)
        wanted = random.uniform(*ITERATION_SECONDS) * LINK_BPS / BITS_PER_BYTE / (2 * (ranks - 1) / ranks)
        low, high = _LEARNING_RATES[model]
        jobs.append(
            RealJob(
                id=f"job{number}-{model}",
                arrival=round(arrival, 3),
                hosts=tuple(random.sample(names, ranks)),
                model=model,
                width=width(model, wanted),
                batch=random.choice(_BATCHES[model]),
                learning_rate=round(math.exp(random.uniform(math.log(low), math.log(high))), 4),
                iterations=random.randint(*shape.iterations),
                seed=1000 * seed + number,
            )
        )
        arrival += random.expovariate(1 / shape.mean_gap_seconds)
    return tuple(jobs)


def parameters(model: Model, width: int) -> int:
    """How many parameters a model of ``evaluation.real.training`` has."""
    if model == "mlp":
        return width * width + 76 * width + 10
    return 9 * width * width + 1035 * width + 714


def gradient_bytes(job: RealJob) -> int:
    """What one iteration of a job reduces."""
    return _PARAMETER_BYTES * parameters(job.model, job.width)


def iteration_seconds(job: RealJob, link_bps: float = LINK_BPS) -> float:
    """Seconds that an iteration's gradients keep a link busy, alone: all-reduce in a ring."""
    ranks = len(job.hosts)
    return 2 * (ranks - 1) / ranks * gradient_bytes(job) * BITS_PER_BYTE / link_bps


def width(model: Model, wanted_bytes: float) -> int:
    """The largest width (at least 4) of which the gradients are no more than so many bytes."""
    low, high = 4, 4096
    while low < high:
        middle = (low + high + 1) // 2
        if _PARAMETER_BYTES * parameters(model, middle) <= wanted_bytes:
            low = middle
        else:
            high = middle - 1
    return low

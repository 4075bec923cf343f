"""A hyper-parameter study: configurations that train the same network, each with its own learning curve and speed.

What a trial shows after some iterations is read from its curve, so a study's decisions depend on the seed and, for
ASHA, on the order in which trials end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from simulator.jobs import SimJob, Step
from simulator.workloads import curves, models
from simulator.workloads.training import draw_compute
from simulator.workloads.transfers import Architecture, barrier_lane, tasks

COMPUTE_RANGE = (0.7, 1.4)
"""A configuration computes as long as its model times a factor in this range, because batch sizes and widths differ."""


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration: what its iteration does, on hosts of its own, and its metric after each iteration."""

    number: int
    lane: tuple[Step, ...]
    curve: tuple[float, ...]
    architecture: Architecture
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """One study. ``rungs[i]`` are the iterations that a trial has done when it leaves rung i."""

    name: str
    model: str
    configs: tuple[Config, ...]
    rungs: tuple[int, ...]
    eta: int
    port: int

    def trial(
        self,
        config: Config,
        rung: int,
        stage: str,
        *,
        start: int = 0,
        arrival: float = 0.0,
        after: Sequence[str] = (),
        rungs_left: int | None = None,
    ) -> SimJob:
        """The job that takes a configuration from ``start`` iterations to the end of a rung."""
        end = self.rungs[rung]
        return SimJob(
            id=f"{stage}/c{config.number:0{len(str(len(self.configs)))}d}",
            lanes=(config.lane,),
            arrival=arrival,
            iterations=end - start,
            after=tuple(after),
            stage=stage,
            rungs_left=rungs_left,
            curve=config.curve[start:end],
            tasks=tasks(config.architecture, config.hosts, self.port + config.number),
            model=self.model,
        )


def best(configs: Sequence[Config], iterations: int, count: int) -> list[Config]:
    """The ``count`` configurations with the highest metric after so many iterations; of equals the first."""
    return sorted(configs, key=lambda config: (-config.curve[iterations - 1], config.number))[:count]


def draw_study(
    random: Random,
    *,
    name: str,
    names: Sequence[str],
    configs: int,
    rungs: tuple[int, ...],
    eta: int,
    workers: tuple[int, int],
    port_rate_bps: float,
    port: int,
) -> Study:
    """A study whose trials all train one model of the table in one architecture, on hosts at random."""
    model = models.scaled(random.choice(models.MODELS), port_rate_bps)
    architecture: Architecture = random.choice(("ps", "ring"))
    drawn = []
    for number in range(1, configs + 1):
        count = random.randint(*workers)
        hosts = tuple(random.sample(names, count + (architecture == "ps")))
        seconds = model.compute_seconds * random.uniform(*COMPUTE_RANGE)
        lane = barrier_lane(architecture, hosts, model.model_bytes, max(draw_compute(random, seconds, count)))
        curve = curves.replay(curves.load(random.choice(curves.names("claim"))), rungs[-1])
        drawn.append(Config(number, lane, curve, architecture, hosts))
    return Study(name, model.name, tuple(drawn), rungs, eta, port)

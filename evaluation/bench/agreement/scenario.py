"""A scenario for the simulator and the testbed: two jobs on three hosts, and how long each takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import Any, Literal

from controller.policies.registry import make
from evaluation.simulated import workload
from simulator.engine import Limits, simulate
from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.results import PolicyChoice

TOLERANCE = 0.10
LINK_BPS = 25e6
OTHERWISE = 16
"""Times that a scenario is simulated with its compute times up to a tenth longer or shorter, and its arrivals moved."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Two jobs on the same three hosts; the first host is a parameter server's. Compute times and arrivals a job."""

    architecture: Literal["ps", "ring"]
    model_bytes: int
    iterations: int
    compute_seconds: tuple[float, float] = (0.2, 0.6)
    arrivals: tuple[float, float] = (0.0, 0.5)
    options: Mapping[str, Any] = field(default_factory=dict)

    def otherwise(self, random: Random, period: float) -> Scenario:
        """The same a little otherwise; ``period``: within so many seconds it may begin at any time."""
        begin = random.uniform(0.0, period)
        later = self.arrivals[1] * random.uniform(0.7, 1.3)
        first, second = (seconds * random.uniform(0.9, 1.1) for seconds in self.compute_seconds)
        return replace(self, arrivals=(begin, begin + later), compute_seconds=(first, second))


RING = Scenario("ring", model_bytes=6_000_000, iterations=24, compute_seconds=(0.5, 0.8))
"""A ring's links are busy both ways at once, so it matters little whether two jobs fall into step.

Two parameter servers on one host can: where one job pushes while the other pulls both are as fast as alone, else they
take twice as long, and which it is hangs on moments of TCP's. The testbed then differs from itself from run to run.
Both jobs compute for longer than TCP's least timeout of 0.2 s, after which a connection begins with a small window
again. Where one computes for less its windows stay, and with them it takes nearly all of a queue that both share.
There are many iterations, for the first few take longer: up to a second each where the emulator is busy.
"""

SERVERS = Scenario("ps", model_bytes=1_000_000, iterations=36, options={"rotate_seconds": 4.0})
"""For TensorLights, which does nothing for a ring. Many short transfers, so that times in and out of step even out."""


def scenario(policy: str) -> Scenario:
    """The one that a policy is compared in."""
    return SERVERS if policy.startswith("tensorlights") else RING


def experiment(asked: Scenario) -> Experiment:
    """What the lab runs."""
    curve = next(curve.name for curve in curves.index() if curve.iterations >= asked.iterations)
    jobs = zip(("sooner", "later"), (5000, 5001), asked.arrivals, asked.compute_seconds, strict=True)
    return Experiment(
        name=f"agreement-{asked.architecture}",
        hosts=3,
        link_bps=LINK_BPS,
        period_seconds=0.5,
        limit_seconds=180.0,
        jobs=tuple(
            JobPlan(
                id=name,
                model="agreement",
                architecture=asked.architecture,
                curve=curve,
                iterations=asked.iterations,
                arrival=arrival,
                hosts=("h1", "h2", "h3"),
                port=port,
                model_bytes=asked.model_bytes,
                compute_seconds=compute,
            )
            for name, port, arrival, compute in jobs
        ),
    )


def options(policy: str) -> dict[str, Any]:
    """A policy's options: a rotation goes by the clock, so it has to come round often."""
    return dict(scenario(policy).options) if policy == "tensorlights-rr" else {}


def choice(policy: str) -> PolicyChoice:
    """What the lab runs under a policy's name."""
    return PolicyChoice(policy, options(policy))


def simulated_seconds(policy: str, asked: Scenario | None = None) -> dict[str, float]:
    """Each job's JCT as the simulator has it; ``asked``: the policy's own scenario if None."""
    run = experiment(asked or scenario(policy))
    limits = Limits(classes=run.queues - 1, period=run.period_seconds)
    found = simulate(workload(run), make(policy, options(policy)), limits).jobs
    return {job.id: found[job.id].end - found[job.id].arrival for job in run.jobs}


def spread(policy: str) -> float:
    """How far a job's simulated times are apart, of their mean, where the scenario is a little otherwise.

    What is far apart in the simulator has no time that a testbed could agree with.
    """
    random = Random(1)
    period = 4 * options(policy).get("rotate_seconds", 0.0)
    times = [simulated_seconds(policy, scenario(policy).otherwise(random, period)) for _ in range(OTHERWISE)]
    by_job = [[one[job] for one in times] for job in times[0]]
    return max((max(one) - min(one)) / fmean(one) for one in by_job)

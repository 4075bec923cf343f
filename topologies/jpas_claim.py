"""What ``scripts/evaluate jpas`` measures and how it adds up: the arms, and the summary of their results. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from simulator.reports import targets
from simulator.reports.statistics import mean_interval, reduction
from simulator.workloads import curves
from topologies import comparison
from topologies.comparison import MEASURES, Measure
from topologies.experiment import Experiment
from topologies.lab_result import LabRequest, LabResult, PolicyChoice
from topologies.workload import HEAVY, LIGHT, LOADS, MIDDLE, Load, generate

FAIR, JPAS = PolicyChoice("fair"), PolicyChoice("jpas")
OTHERS = (
    PolicyChoice("fifo"),
    PolicyChoice("las"),
    *(PolicyChoice("jpas", {"variant": name}, f"jpas-{name}") for name in ("gain", "remaining", "attained")),
)
ORDER = tuple(choice.name for choice in (JPAS, *OTHERS))
SEEDS = {LIGHT.name: range(46, 50), MIDDLE.name: range(46, 51), HEAVY.name: range(46, 51)}
"""Seeds that nothing was run on before JPAS was as it is."""
SEEDS_OF_OTHERS = range(46, 49)
ALONE_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class Group:
    """Arms that share a network: one load and seed under several policies in turn.

    ``alone_iterations`` of 0: how long the jobs take alone is not measured, so there is no headroom to share.
    """

    load: Load
    seed: int
    policies: tuple[PolicyChoice, ...]
    alone_iterations: int = ALONE_ITERATIONS

    @property
    def name(self) -> str:
        """What the group's folder is called."""
        return f"{self.load.name}-{self.seed}"

    @property
    def cost(self) -> float:
        """Roughly how long it takes, to begin with the longest."""
        return len(self.policies) * (60 + 4 * self.load.jobs)

    def experiment(self) -> Experiment:
        """Its jobs."""
        return generate(self.load, self.seed)

    def request(self) -> LabRequest:
        """What the lab is asked. The order of the arms turns with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        turned = self.policies[turn:] + self.policies[:turn]
        return LabRequest((self.experiment(),), turned, alone_iterations=self.alone_iterations)


def groups(*, quick: bool = False) -> list[Group]:
    """All arms of the claim, the longest group first; quick: one seed of the light load, fair and jpas only."""
    if quick:
        return [Group(LIGHT, 1, (FAIR, JPAS), alone_iterations=0)]
    made = [
        Group(
            LOADS[load],
            seed,
            (FAIR, JPAS, *OTHERS) if load == MIDDLE.name and seed in SEEDS_OF_OTHERS else (FAIR, JPAS),
        )
        for load, seeds in SEEDS.items()
        for seed in seeds
    ]
    return sorted(made, key=lambda group: -group.cost)


def alone(experiment: Experiment, per_iteration: Mapping[str, float]) -> dict[str, dict[Measure, float]]:
    """What each job of an experiment would take with the network to itself."""
    replayed = {job.id: curves.replay(curves.load(job.curve), job.iterations) for job in experiment.jobs}
    return comparison.alone_times(
        per_iteration,
        lambda job, fraction: targets.target_iteration(replayed[job], fraction),
        {job.id: job.iterations for job in experiment.jobs},
    )


def add_up(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
    """Per load and policy: means over seeds, the reduction against fair sharing, the headroom won; with intervals."""
    loads: dict[str, Any] = {}
    for load in LOADS:
        of_load = [
            _Run(group, result, _alone_means(group, result)) for group, result in results if group.load.name == load
        ]
        if not of_load:
            continue
        names = [n for n in ("fair", *ORDER) if any(arm.policy == n for run in of_load for arm in run.result.arms)]
        loads[load] = {name: _policy(name, of_load) for name in names}
        if all(run.result.alone_seconds for run in of_load):
            loads[load]["alone"] = {
                measure: {"mean": fmean(run.alone[measure] for run in of_load)} for measure in MEASURES
            }
    return loads


@dataclass(frozen=True, slots=True)
class _Run:
    """A group that was measured, and the means over its jobs of what they would take alone (NaN: not measured)."""

    group: Group
    result: LabResult
    alone: Mapping[Measure, float]


def _policy(name: str, runs: Sequence[_Run]) -> dict[str, Any]:
    """One policy at one load, over the seeds that ran it; its partner in each is fair sharing on the same jobs."""
    made: dict[str, Any] = {"seeds": [], "censored": 0, "jobs": 0}
    rows: dict[Measure, list[tuple[float, float, float]]] = {measure: [] for measure in MEASURES}
    for run in runs:
        arms = {arm.policy: arm for arm in run.result.arms}
        if name not in arms:
            continue
        made["seeds"].append(run.group.seed)
        made["jobs"] += len(arms[name].jobs)
        made["censored"] += len(comparison.censored(arms[name]))
        for measure in MEASURES:
            rows[measure].append(
                (
                    comparison.mean(arms["fair"], measure),
                    comparison.mean(arms[name], measure),
                    run.alone[measure],
                )
            )
    for measure, of_seeds in rows.items():
        fair, subject, lone = ([row[i] for row in of_seeds] for i in range(3))
        shares = [(f - s) / (f - a) for f, s, a in of_seeds]
        known = not any(math.isnan(seconds) for seconds in lone)
        made[measure.removesuffix("_seconds")] = {
            "mean": fmean(subject),
            "by_seed": subject,
            "reduction": reduction(fair, subject),
            "reduction_ci95": list(mean_interval([1 - s / f for f, s, _ in of_seeds])),
            "headroom_won": (sum(fair) - sum(subject)) / (sum(fair) - sum(lone)) if known else None,
            "headroom_won_ci95": list(mean_interval(shares)) if known else None,
        }
    return made


def _alone_means(group: Group, result: LabResult) -> dict[Measure, float]:
    if not result.alone_seconds:
        return dict.fromkeys(MEASURES, math.nan)
    (per_iteration,) = result.alone_seconds.values()
    times = alone(group.experiment(), per_iteration).values()
    return {measure: fmean(job[measure] for job in times) for measure in MEASURES}

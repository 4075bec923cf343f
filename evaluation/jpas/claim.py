"""The claim ``jpas``: what ``scripts/evaluate jpas`` measures, how it adds up, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from controller.curves.fit import T90
from evaluation import plots, summary
from evaluation.lab_group import LabGroup
from simulator.reports import targets
from simulator.reports.statistics import reduction, reduction_interval
from simulator.workloads import curves
from topologies.box.datapath import Wanted
from topologies.experiments.experiment import Experiment
from topologies.experiments.workload import HEAVY, LIGHT, LOADS, MIDDLE, Load, generate
from topologies.lab import comparison
from topologies.lab.comparison import MEASURES, Measure
from topologies.lab.results import LabRequest, LabResult, PolicyChoice

DATAPATH: Wanted = "user"
"""Of the machine's own processors the network has all; a box has one, and needs a longer period (decision 6)."""
FAIR, JPAS = PolicyChoice("fair"), PolicyChoice("jpas")
OTHERS = (
    PolicyChoice("fifo"),
    PolicyChoice("las"),
    *(PolicyChoice("jpas", {"variant": name}, f"jpas-{name}") for name in ("gain", "remaining", "attained")),
)
ORDER = tuple(choice.name for choice in (JPAS, *OTHERS))
SEEDS = {LIGHT.name: range(66, 70), MIDDLE.name: range(66, 71), HEAVY.name: range(66, 71)}
"""Seeds that nothing was run on before JPAS was as it is."""
SEEDS_OF_OTHERS = range(66, 69)
PERIOD_SECONDS = 1.0
"""The controller's T."""
ALONE_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class Group(LabGroup):
    """Arms that share a network: one load and seed under several policies in turn.

    ``alone_iterations`` of 0: how long the jobs take alone is not measured, so there is no headroom to share.
    """

    load: Load
    seed: int
    policies: tuple[PolicyChoice, ...]
    alone_iterations: int = ALONE_ITERATIONS

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"{self.load.name}-{self.seed}"

    @property
    def cost(self) -> float:
        """Roughly how long it takes, to begin with the longest."""
        return len(self.policies) * (60 + 4 * self.load.jobs)

    def experiment(self) -> Experiment:
        """Return the experiment with the group's jobs."""
        return generate(self.load, self.seed, period_seconds=PERIOD_SECONDS)

    def request(self) -> LabRequest:
        """Return the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        turned = self.policies[turn:] + self.policies[:turn]
        return LabRequest((self.experiment(),), turned, alone_iterations=self.alone_iterations)


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All arms of the claim, the heaviest load first; quick: one seed of the light load, fair and jpas only.

    ``others`` of False: fair sharing and JPAS alone at every load.
    """
    if quick:
        return [Group(LIGHT, 1, (FAIR, JPAS), alone_iterations=0)]
    all_groups = [
        Group(
            LOADS[load],
            seed,
            (FAIR, JPAS, *OTHERS) if others and load == MIDDLE.name and seed in SEEDS_OF_OTHERS else (FAIR, JPAS),
        )
        for load, seeds in SEEDS.items()
        for seed in seeds
    ]
    # Where the network is scarcest the claim is hardest to keep: whether it does is known first.
    return sorted(all_groups, key=lambda group: (-group.load.jobs, -group.cost))


def alone(experiment: Experiment, per_iteration: Mapping[str, float]) -> dict[str, dict[Measure, float]]:
    """What each job of an experiment would take with the network to itself."""
    replayed = {job.id: curves.replay(job.rows, job.iterations) for job in experiment.jobs}
    declared = {job.id: job.target for job in experiment.jobs}

    def target(job: str, fraction: float) -> int | None:
        value = declared[job]
        if value is not None and fraction == T90.fraction:
            return targets.declared_iteration(replayed[job], value)
        return targets.target_iteration(replayed[job], fraction)

    return comparison.alone_times(
        per_iteration,
        target,
        {job.id: job.iterations for job in experiment.jobs},
    )


def add_up(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
    """The arms, the least idle share of the processors in any of them, and the loads."""
    arms = [arm for _, result in results for arm in result.arms]
    return {
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "loads": by_load(results),
    }


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every policy against fair sharing at each load; and the share of the headroom to t90, where that was measured."""
    return [
        claim
        for load, policies in fields["loads"].items()
        for name in ORDER
        if name in policies
        for claim in _claims(load, name, policies[name])
    ]


def _claims(load: str, name: str, policy: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    claims = [
        (comparison.sooner(name, "jobs", measure), comparison.short(measure), "reduction_ci95", 0.0)
        for measure in MEASURES
    ]
    t90 = policy["t90"]
    if t90["headroom_won"] is not None:
        # Between fair sharing and each job alone lies what there is to win: the claim is of that.
        what = f"{name} wins a share of what fair sharing takes longer than each job alone"
        claims.append((what, "t90", "headroom_won_ci95", t90["alone"]))
    for what, measure, interval, floor in claims:
        values = policy[measure]
        yield summary.claim(
            f"{what}, {load} load",
            metric=f"{measure}_above_alone" if floor else f"mean_{measure}",
            unit="s",
            baseline=values["fair"] - floor,
            value=values["mean"] - floor,
            interval=tuple(values[interval]),
        )


_COLUMNS = ("policy", "seeds", "t90 (s)", "t90 saved", "95 %", "headroom won", "t95 saved", "JCT saved", "censored")


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """A table a load."""
    for load, policies in fields["loads"].items():
        table = Table(title=f"{load} load")
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name == "policy" else "right")
        for policy, values in policies.items():
            if policy == "alone":
                continue
            t90 = values["t90"]
            low, high = t90["reduction_ci95"]
            table.add_row(
                policy,
                str(len(values["seeds"])),
                f"{t90['mean']:.1f}",
                f"{t90['reduction']:.1%}",
                f"{low:.1%} to {high:.1%}",
                "" if t90["headroom_won"] is None else f"{t90['headroom_won']:.0%}",
                f"{values['t95']['reduction']:.1%}",
                f"{values['jct']['reduction']:.1%}",
                f"{values['censored']}/{values['jobs']}",
            )
        if "alone" in policies:
            table.add_row("alone", "", f"{policies['alone']['t90_seconds']['mean']:.1f}")
        yield table


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """The mean reduction of t90 by load and policy."""
    shown = {load: {k: v for k, v in policies.items() if k in ORDER} for load, policies in fields["loads"].items()}
    plots.reductions(shown, ORDER, folder / "jpas.png")


def by_load(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
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
    fields: dict[str, Any] = {"seeds": [], "censored": 0, "jobs": 0}
    rows: dict[Measure, list[tuple[float, float, float]]] = {measure: [] for measure in MEASURES}
    for run in runs:
        arms = {arm.policy: arm for arm in run.result.arms}
        if name not in arms:
            continue
        fields["seeds"].append(run.group.seed)
        fields["jobs"] += len(arms[name].jobs)
        fields["censored"] += len(comparison.censored(arms[name]))
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
        # The headroom, and what of it is left.
        whole, rest = [f - a for f, _, a in of_seeds], [s - a for _, s, a in of_seeds]
        known = not any(math.isnan(seconds) for seconds in lone)
        fields[comparison.short(measure)] = {
            "mean": fmean(subject),
            # On the same seeds, which need not be all.
            "fair": fmean(fair),
            "alone": fmean(lone) if known else None,
            "by_seed": subject,
            "reduction": reduction(fair, subject),
            "reduction_ci95": list(reduction_interval(fair, subject)),
            "headroom_won": reduction(whole, rest) if known else None,
            "headroom_won_ci95": list(reduction_interval(whole, rest)) if known else None,
        }
    return fields


def _alone_means(group: Group, result: LabResult) -> dict[Measure, float]:
    if not result.alone_seconds:
        return dict.fromkeys(MEASURES, math.nan)
    (per_iteration,) = result.alone_seconds.values()
    times = alone(group.experiment(), per_iteration).values()
    return {measure: fmean(job[measure] for job in times) for measure in MEASURES}

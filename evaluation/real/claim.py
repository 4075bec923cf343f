"""What ``scripts/evaluate real`` measures and how it adds up: real PyTorch trainings under fair sharing and under JPAS.

Several jobs at once, each a DDP training (Gloo, on processors) of scikit-learn's digits: another model, size, learning
rate and length a job. The scripts are as users have them, but for the callback; agents find the jobs' sockets; nobody
declares a port or a byte. t90 and t95 are of the accuracy on pictures that nobody trains on, by each job's own run.

Both arms of a seed train the same: the same jobs from the same random numbers, in step, so accuracy by iteration is the
same, and only when iterations happen differs. How far the arms' curves are apart is told.

All ranks share the emulator's processors. The summary tells how many a core there are, how much they compute, and how
long they could have run and had no processor (the kernel counts that). Where that was long the processors were the
bottleneck and nothing is to be quoted: there is no headline then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from evaluation import summary
from evaluation.claim import Setting
from evaluation.real import lab
from evaluation.real.history import against, largest_difference
from evaluation.real.request import LEAST_IDLE_SHARE, MOST_WAITING_SHARE, RealRequest, RealResult, load
from evaluation.real.workload import FULL, LINK_BPS, QUICK, Shape, generate
from simulator.reports.statistics import reduction, reduction_interval
from topologies.box.datapath import Wanted
from topologies.experiments.workload import PERIOD_SECONDS
from topologies.lab import comparison
from topologies.lab.comparison import MEASURES
from topologies.lab.results import ArmResult, PolicyChoice

DATAPATH: Wanted = "auto"
FAIR, JPAS = PolicyChoice("fair"), PolicyChoice("jpas")
SEEDS = range(71, 79)
"""Seeds that nothing was trained on before."""
LIMIT_SECONDS = 900.0
QUICK_LIMIT_SECONDS = 75.0


@dataclass(frozen=True, slots=True)
class Group:
    """The two arms of a seed, on one network."""

    seed: int
    shape: Shape = FULL
    limit_seconds: float = LIMIT_SECONDS

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"seed-{self.seed}"

    @property
    def arms(self) -> int:
        """The number of arms: one for each policy."""
        return len(self.asked().policies)

    def asked(self) -> RealRequest:
        """Return the request. The policy that goes first alternates with the seed."""
        policies = (FAIR, JPAS) if self.seed % 2 else (JPAS, FAIR)
        return RealRequest(
            self.seed,
            self.shape.hosts,
            LINK_BPS,
            generate(self.shape, self.seed),
            policies,
            PERIOD_SECONDS,
            self.limit_seconds,
        )

    def run(self, setting: Setting) -> RealResult:
        """Measure. Raises one of the lab's EXPECTED_ERRORS."""
        return lab.LAB.run(self.asked(), setting.wanted, setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> RealResult:
        """Read the result that ``run`` left. Raises OSError, ValueError."""
        return lab.LAB.read(folder)


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:  # noqa: ARG001 - nothing stands beside
    """All seeds; quick: one, with fewer and shorter jobs."""
    if quick:
        return [Group(1, QUICK, QUICK_LIMIT_SECONDS)]
    return [Group(seed) for seed in SEEDS]


def add_up(results: Sequence[tuple[Group, RealResult]]) -> dict[str, Any]:
    """Means over jobs and seeds of each policy, what JPAS saves, and how busy the processors were."""
    pairs = [_pair(result) for _, result in results]
    policies = {choice.name: _policy(choice.name, results, pairs) for choice in (FAIR, JPAS)}
    return {
        "torch": sorted({result.torch for _, result in results}),
        "link_bps": LINK_BPS,
        "processors": _processors(results),
        "policies": policies,
        "largest_curve_difference": max(
            largest_difference(pair["fair"].jobs[job].history, pair["jpas"].jobs[job].history)
            for pair in pairs
            for job in pair["fair"].jobs
        ),
        "seeds_measured": [_seed(group, result, pair) for (group, result), pair in zip(results, pairs, strict=True)],
    }


def _pair(result: RealResult) -> dict[str, ArmResult]:
    """The arms by policy; a job that was stopped in one has its targets from its full run in the other."""
    arms = {arm_result.arm.policy: arm_result.arm for arm_result in result.arms}
    full = {
        job: job_result.history
        for arm in arms.values()
        for job, job_result in arm.jobs.items()
        if job_result.jct_seconds is not None
    }
    return {
        name: replace(arm, jobs={job: against(job_result, full.get(job, ())) for job, job_result in arm.jobs.items()})
        for name, arm in arms.items()
    }


def _policy(
    name: str, results: Sequence[tuple[Group, RealResult]], pairs: Sequence[Mapping[str, ArmResult]]
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "seeds": [group.seed for group, _ in results],
        "jobs": sum(len(pair[name].jobs) for pair in pairs),
        "censored": sum(len(comparison.censored(pair[name])) for pair in pairs),
        "report_to_rule_p99": max(
            (value for pair in pairs if (value := pair[name].control.report_to_rule_p99) is not None), default=None
        ),
    }
    for measure in MEASURES:
        fair = [comparison.mean(pair["fair"], measure) for pair in pairs]
        own = [comparison.mean(pair[name], measure) for pair in pairs]
        fields[comparison.short(measure)] = {
            "mean": fmean(own),
            "by_seed": own,
            "reduction": reduction(fair, own),
            "reduction_ci95": list(reduction_interval(fair, own)),
        }
    return fields


def _processors(results: Sequence[tuple[Group, RealResult]]) -> dict[str, Any]:
    """Over all arms the worst of each figure, and of what the ranks computed the mean."""
    loads = [load(arm, result.cores) for _, result in results for arm in result.arms]
    waits = [arm_load.waiting_share for arm_load in loads if arm_load.waiting_share is not None]
    return {
        "cores": max(result.cores for _, result in results),
        "most_ranks_a_core": max(arm_load.ranks_a_core for arm_load in loads),
        "most_busy_ranks_a_core": max(arm_load.busy_ranks_a_core for arm_load in loads),
        "computing_share": fmean(arm_load.computing_share for arm_load in loads),
        "most_waiting_share": max(waits) if len(waits) == len(loads) else None,
        "least_cpu_idle_share": min(arm_load.idle_share for arm_load in loads),
        "limits": {"waiting_share": MOST_WAITING_SHARE, "cpu_idle_share": LEAST_IDLE_SHARE, "busy_ranks_a_core": 1.0},
        "bottleneck_in_arms": sum(arm_load.is_bottleneck for arm_load in loads),
        "arms": len(loads),
    }


def _seed(group: Group, result: RealResult, pair: Mapping[str, ArmResult]) -> dict[str, Any]:
    """One seed: its jobs, what was found of them, and how they went under each policy."""
    discovered = {arm_result.arm.policy: arm_result.found for arm_result in result.arms}
    return {
        "seed": group.seed,
        "jobs": {
            job.id: asdict(job)
            | {
                name: {
                    "t90_seconds": arm.jobs[job.id].t90_seconds,
                    "t95_seconds": arm.jobs[job.id].t95_seconds,
                    "jct_seconds": arm.jobs[job.id].jct_seconds,
                    "last_accuracy": arm.jobs[job.id].history[-1][2] if arm.jobs[job.id].history else None,
                    "found": asdict(discovered[name][job.id]),
                }
                for name, arm in pair.items()
            }
            for job in group.asked().jobs
        },
        "arms": {
            arm_result.arm.policy: {"seconds": arm_result.arm.seconds, "links": _mean_link(arm_result.arm)}
            | asdict(load(arm_result, result.cores))
            for arm_result in result.arms
        },
    }


def _mean_link(arm: ArmResult) -> float | None:
    """The mean use of the hosts' links, of the direction that carries more."""
    shares = [max(link.egress_share, link.ingress_share) for link in arm.links]
    return fmean(shares) if shares else None


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What JPAS saves; nothing where the processors were the bottleneck."""
    if fields["processors"]["bottleneck_in_arms"]:
        return []
    fair, jpas = fields["policies"]["fair"], fields["policies"]["jpas"]
    measures = {comparison.short(measure): measure for measure in MEASURES}
    return [
        summary.claim(
            comparison.sooner("JPAS", "real PyTorch DDP jobs", measure),
            metric=f"mean_{short}",
            unit="s",
            baseline=fair[short]["mean"],
            value=jpas[short]["mean"],
            interval=tuple(jpas[short]["reduction_ci95"]),
        )
        for short, measure in measures.items()
    ]


def tables(fields: Mapping[str, Any]) -> Iterable[Table]:
    """A row a policy; and the processors."""
    table = Table(title="real PyTorch jobs")
    columns = ("policy", "seeds", "t90 (s)", "saved", "95 %", "t95 saved", "JCT saved", "censored")
    for name in columns:
        table.add_column(name, justify="left" if name == "policy" else "right")
    for policy, values in fields["policies"].items():
        t90 = values["t90"]
        low, high = t90["reduction_ci95"]
        table.add_row(
            policy,
            str(len(values["seeds"])),
            f"{t90['mean']:.1f}",
            f"{t90['reduction']:.1%}",
            f"{low:.1%} to {high:.1%}",
            f"{values['t95']['reduction']:.1%}",
            f"{values['jct']['reduction']:.1%}",
            f"{values['censored']}/{values['jobs']}",
        )
    yield table
    yield _processors_table(fields["processors"])


def _processors_table(values: Mapping[str, Any]) -> Table:
    warning = f"the bottleneck in {values['bottleneck_in_arms']} of {values['arms']} arms: nothing is to be quoted"
    table = Table(title=f"{values['cores']} processors" + (f", {warning}" if values["bottleneck_in_arms"] else ""))
    for name in ("ranks a core", "busy ranks a core", "ranks computing", "ranks waiting for a processor", "idle"):
        table.add_column(name, justify="right")
    waiting = values["most_waiting_share"]
    table.add_row(
        f"{values['most_ranks_a_core']:.1f}",
        f"{values['most_busy_ranks_a_core']:.2f}",
        f"{values['computing_share']:.0%}",
        "not told" if waiting is None else f"{waiting:.1%}",
        f"{values['least_cpu_idle_share']:.0%}",
    )
    return table


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """Mean t90 by seed under each policy, into ``real.png``."""
    from evaluation.real.plot import by_seed  # noqa: PLC0415 (matplotlib takes a second to load)

    by_seed(fields["policies"], folder / "real.png")

"""The claim ``tensorlights``: parameter servers that share hosts, and what bands at their NICs do for the jobs.

As its authors measured it (X. S. Huang, A. Chen, T. S. E. Ng, HPBDC 2019), on what is here: the jobs of
``evaluation.tensorlights.workload``, their servers all on one host, or spread over more, down to one a host. Theirs: 21
hosts, 21 jobs, up to 31 % off the mean completion time, and less the more the servers spread.

Every arm is the same but for what orders the hosts' NICs: the switch has one class for all jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from evaluation import plots, summary
from evaluation.lab_group import LabGroup
from evaluation.tensorlights.workload import JOBS, experiment
from simulator.reports.statistics import reduction, reduction_interval
from topologies.box.datapath import Wanted
from topologies.experiments.experiment import Experiment
from topologies.lab import comparison
from topologies.lab.meters import LinkUse
from topologies.lab.results import ArmResult, LabRequest, LabResult, PolicyChoice

DATAPATH: Wanted = "auto"
SERVER_HOSTS = (1, 2, 3, 6, 12)
"""How many hosts the jobs' servers stand on: all on one, by six, by four, by two, one each."""

SEEDS = range(61, 66)
SEEDS_OF_SPREAD = range(61, 64)
"""The placement that the claim is about has more seeds than those where less is to be seen."""

QUICK_SEED = 1
FAIR = PolicyChoice("fair", nic="none")
ONE = PolicyChoice("fair", label="tls-one", nic="tls-one")
RR = PolicyChoice("fair", label="tls-rr", nic="tls-rr")
ARMS = (FAIR, ONE, RR)
ORDER = (ONE.name, RR.name)

ITERATIONS, QUICK_ITERATIONS = 20, 8


@dataclass(frozen=True, slots=True)
class Group(LabGroup):
    """One placement and seed under all arms in turn. ``server_hosts``: how many hosts the servers stand on."""

    server_hosts: int
    seed: int
    iterations: int = ITERATIONS
    policies: tuple[PolicyChoice, ...] = ARMS

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"servers-on-{self.server_hosts}-{self.seed}"

    def experiment(self) -> Experiment:
        """Return the experiment with the group's jobs."""
        return experiment(self.server_hosts, self.seed, self.iterations)

    def request(self) -> LabRequest:
        """Return the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        return LabRequest((self.experiment(),), self.policies[turn:] + self.policies[:turn])


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All arms of the claim, the longest first; quick: one seed of short jobs, all servers on one host.

    ``others`` of False: without TLs-One.
    """
    policies = ARMS if others else (FAIR, RR)
    if quick:
        return [Group(SERVER_HOSTS[0], QUICK_SEED, QUICK_ITERATIONS, policies)]
    return [
        Group(server_hosts, seed, policies=policies)
        for server_hosts in SERVER_HOSTS
        for seed in (SEEDS if server_hosts == SERVER_HOSTS[0] else SEEDS_OF_SPREAD)
    ]


def add_up(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
    """The arms, the least idle share of the processors in any of them, and the placements."""
    arms = [arm for _, result in results for arm in result.arms]
    placements = {
        str(server_hosts): _placement([pair for pair in results if pair[0].server_hosts == server_hosts])
        for server_hosts in SERVER_HOSTS
        if any(group.server_hosts == server_hosts for group, _ in results)
    }
    return {
        "arms": len(arms),
        "least_cpu_idle_share": min(arm.cpu_idle_share for arm in arms),
        "jobs": JOBS,
        "placements": placements,
    }


@dataclass(frozen=True, slots=True)
class _Run:
    """One arm, and the group that it belongs to."""

    group: Group
    arm: ArmResult


def _placement(results: Sequence[tuple[Group, LabResult]]) -> dict[str, Any]:
    """One placement: each arm over its seeds, beside fair sharing on the same jobs."""
    runs: dict[str, list[_Run]] = {}
    for group, result in results:
        for arm in result.arms:
            runs.setdefault(arm.policy, []).append(_Run(group, arm))
    return {choice.name: _arm(runs[FAIR.name], runs[choice.name]) for choice in ARMS if choice.name in runs}


def _arm(fair: Sequence[_Run], subject: Sequence[_Run]) -> dict[str, Any]:
    return {
        "seeds": [run.group.seed for run in subject],
        "jobs": sum(len(run.arm.jobs) for run in subject),
        "censored": sum(len(comparison.censored(run.arm)) for run in subject),
        "jct": _beside(fair, subject, lambda arm: comparison.mean(arm, "jct_seconds")),
        "makespan": _beside(fair, subject, _makespan),
        "barrier_wait": _beside(fair, subject, lambda arm: _barrier(arm, "mean_seconds")),
        "barrier_variance": _beside(fair, subject, lambda arm: _barrier(arm, "variance")),
        "cpu_busy_share": fmean(1.0 - run.arm.cpu_idle_share for run in subject),
        "links": _links(subject),
    }


def _beside(
    fair: Sequence[_Run], subject: Sequence[_Run], measure: Callable[[ArmResult], float | None]
) -> dict[str, Any] | None:
    """A measure by seed, its mean, and how much less that is than under fair sharing; None: it was not measured."""
    pairs = []
    for baseline, run in zip(fair, subject, strict=True):
        before, after = measure(baseline.arm), measure(run.arm)
        if before is None or after is None:
            return None
        pairs.append((before, after))
    befores, afters = zip(*pairs, strict=True)
    compared = any(befores)
    return {
        "mean": fmean(afters),
        "by_seed": list(afters),
        "reduction": reduction(befores, afters) if compared else None,
        "reduction_ci95": list(reduction_interval(befores, afters)) if compared else [math.nan, math.nan],
    }


def _makespan(arm: ArmResult) -> float:
    """Seconds of the longest job; all are launched within LAUNCH_SECONDS."""
    return max(comparison.values(arm, "jct_seconds"))


def _barrier(arm: ArmResult, what: str) -> float | None:
    """The mean over jobs; None where a job was not asked, or came to no barrier."""
    waits = [job.barrier for job in arm.jobs.values()]
    known = [float(getattr(wait, what)) for wait in waits if wait is not None]
    return fmean(known) if len(known) == len(waits) else None


def _links(runs: Sequence[_Run]) -> dict[str, float] | None:
    """Used shares of links, over seeds: of the hosts with servers, and of all."""
    of_servers: list[LinkUse] = []
    of_all: list[LinkUse] = []
    for run in runs:
        servers = {job.hosts[0] for job in run.group.experiment().jobs}
        of_servers += [link for link in run.arm.links if link.host in servers]
        of_all += run.arm.links
    if not of_all or not of_servers:
        return None
    return {
        "servers_egress_share": fmean(link.egress_share for link in of_servers),
        "servers_ingress_share": fmean(link.ingress_share for link in of_servers),
        "mean_egress_share": fmean(link.egress_share for link in of_all),
        "busiest_egress_share": max(link.egress_share for link in of_all),
    }


def placement_name(server_hosts: str) -> str:
    """A placement in words."""
    count = int(server_hosts)
    each = JOBS // count
    where = "one host" if count == 1 else f"{count} hosts, {each} each" if each > 1 else f"{count} hosts, one each"
    return f"{JOBS} parameter servers on {where}"


_NAMES = {ONE.name: "TLs-One", RR.name: "TLs-RR"}
_MEASURES = (
    ("jct", "mean_jct", "s", "{} shortens the mean job completion time against fair sharing"),
    ("barrier_wait", "mean_barrier_wait", "s", "{} shortens the mean wait at the workers' barrier"),
    ("barrier_variance", "barrier_wait_variance", "s2", "{} evens the waits of a job's workers at a barrier"),
)


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Completion times at every placement; waits where all servers stand on one host."""
    claims = []
    for server_hosts, arms in fields["placements"].items():
        for key, metric, unit, words in _MEASURES if server_hosts == str(SERVER_HOSTS[0]) else _MEASURES[:1]:
            for name in (name for name in ORDER if name in arms):
                fair, values = arms[FAIR.name][key], arms[name][key]
                if fair is None or values is None:
                    continue
                claims.append(
                    summary.claim(
                        f"{words.format(_NAMES[name])}, {placement_name(server_hosts)}",
                        metric=metric,
                        unit=unit,
                        baseline=fair["mean"],
                        value=values["mean"],
                        interval=tuple(values["reduction_ci95"]),
                    )
                )
    return claims


_COLUMNS = (
    "",
    "seeds",
    "JCT (s)",
    "saved",
    "95 %",
    "barrier wait (s)",
    "saved",
    "variance saved",
    "CPU",
    "servers' links",
)


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """A table a placement."""
    for server_hosts, arms in fields["placements"].items():
        table = Table(title=placement_name(server_hosts))
        for number, name in enumerate(_COLUMNS):
            table.add_column(name, justify="right" if number else "left")
        for name, values in arms.items():
            jct, wait, variance, links = (values[k] for k in ("jct", "barrier_wait", "barrier_variance", "links"))
            low, high = jct["reduction_ci95"]
            table.add_row(
                name,
                str(len(values["seeds"])),
                f"{jct['mean']:.1f}",
                _share(jct),
                f"{low:.1%} to {high:.1%}",
                "-" if wait is None else f"{wait['mean']:.2f}",
                _share(wait),
                _share(variance),
                f"{values['cpu_busy_share']:.0%}",
                "-" if links is None else f"{links['servers_egress_share']:.0%}",
            )
        yield table


def _share(values: Mapping[str, Any] | None) -> str:
    return "-" if values is None or values["reduction"] is None else f"{values['reduction']:.1%}"


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """The mean reduction of completion times by placement."""
    shown = {
        placement_name(server_hosts).replace(" on ", "\n").replace(",", "\n"): {
            name: arms[name] for name in ORDER if name in arms
        }
        for server_hosts, arms in fields["placements"].items()
    }
    plots.reductions(shown, ORDER, folder / "tensorlights.png", measure="jct", what="mean completion time")

"""The claim ``jpas``: what ``scripts/evaluate jpas`` measures, how it adds up, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from evaluation import plots, summary
from evaluation.jpas.arms import AT_HEAVY, FAIR, groups
from evaluation.jpas.figures import add_up
from topologies.box.datapath import Wanted
from topologies.lab import comparison
from topologies.lab.comparison import MEASURES

__all__ = ["DATAPATH", "add_up", "groups", "headline", "plot", "tables"]

DATAPATH: Wanted = "user"
"""Of the machine's own processors the network has all; a box has one, and needs a longer period (decision 6)."""


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every arm against fair sharing; and its share of the headroom to t90, where that was measured."""
    return [
        claim | {"policy": _policy(knows), "workload": workload, "load": load, "knows": knows}
        for workload, loads in fields["workloads"].items()
        for load, arms in loads.items()
        for knows in AT_HEAVY
        if knows in arms
        for claim in _claims(workload, load, knows, arms[knows])
    ]


def _policy(knows: str) -> str:
    return "everything" if knows == "everything" else "jpas"


def _claims(workload: str, load: str, knows: str, arm: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    who = "an order that knows everything" if knows == "everything" else f"JPAS ({knows})"
    claims = [
        (comparison.sooner(who, "jobs", measure), f"mean_{comparison.short(measure)}", measure, "reduction_ci95", 0.0)
        for measure in MEASURES
    ]
    if arm["t90"]["headroom_won"] is not None:
        # Between fair sharing and each job alone lies what there is to win: the claim is of that.
        what = f"{who} wins a share of what fair sharing takes longer than each job alone"
        claims.append((what, "t90_above_alone", "t90_seconds", "headroom_won_ci95", arm["t90"]["alone"]))
    for what, metric, measure, interval, floor in claims:
        values = arm[comparison.short(measure)]
        yield summary.claim(
            f"{what}, {load} load, {workload} workload",
            metric=metric,
            unit="s",
            baseline=values["fair"] - floor,
            value=values["mean"] - floor,
            interval=tuple(values[interval]),
        )


_COLUMNS = (
    "knows",
    "seeds",
    "t90 (s)",
    "t90 saved",
    "headroom won",
    "of everything",
    "against none",
    "t95 saved",
    "JCT saved",
    "missed",
)


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """A table for each workload and load, and one by the number of earlier runs."""
    for workload, loads in fields["workloads"].items():
        for load, arms in loads.items():
            table = Table(title=f"{workload} workload, {load} load (95 % intervals)")
            for name in _COLUMNS:
                table.add_column(name, justify="left" if name == "knows" else "right")
            for knows in (FAIR, *AT_HEAVY):
                if knows in arms:
                    table.add_row(*_row(knows, arms[knows]))
            yield table
            if "by_earlier_runs" in arms:
                yield _by_earlier_runs(arms["by_earlier_runs"])


def _row(knows: str, arm: Mapping[str, Any]) -> tuple[str, ...]:
    t90, t95, jct = arm["t90"], arm["t95"], arm["jct"]
    if knows == FAIR:
        # It is what the others are compared with.
        return (knows, str(len(arm["seeds"])), f"{t90['mean']:.1f}", *[""] * 6, f"{arm['censored']}/{arm['jobs']}")
    return (
        knows,
        str(len(arm["seeds"])),
        f"{t90['mean']:.1f}",
        _share(t90["reduction"], t90["reduction_ci95"]),
        _share(t90["headroom_won"], t90["headroom_won_ci95"]),
        *(_of(arm.get(name)) for name in ("of_everything", "saved_against_none")),
        _share(t95["reduction"], t95["reduction_ci95"]),
        _share(jct["reduction"], jct["reduction_ci95"]),
        f"{arm['censored']}/{arm['jobs']}",
    )


def _of(figure: Mapping[str, Any] | None) -> str:
    return "" if figure is None else _share(figure["share"], figure["ci95"])


def _share(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return ""
    # One seed has no interval.
    return (
        f"{value:.0%}"
        if math.isnan(interval[0])
        else f"{value:.0%} ({100 * interval[0]:.0f} to {100 * interval[1]:.0f})"
    )


def _by_earlier_runs(buckets: Mapping[str, Mapping[str, float]]) -> Table:
    table = Table(title="mean t90 (s) by the number of earlier runs")
    names = [name for name in next(iter(buckets.values())) if name != "jobs"]
    for name in ("earlier runs", "jobs", *names):
        table.add_column(name, justify="left" if name == "earlier runs" else "right")
    for bucket, values in buckets.items():
        table.add_row(bucket, f"{values['jobs']:.0f}", *(f"{values[name]:.1f}" for name in names))
    return table


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """The mean reduction of t90 by workload and load, and by what JPAS knew."""
    shown: dict[str, dict[str, Any]] = {
        f"{workload}, {load}": {knows: arms[knows] for knows in AT_HEAVY if knows in arms}
        for workload, loads in fields["workloads"].items()
        for load, arms in loads.items()
    }
    plots.reductions(shown, AT_HEAVY, folder / "jpas.png")

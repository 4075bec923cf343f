"""The plots of a sweep: CDFs, bars with intervals, means over load, a link's timeline by job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulator.reports.measures import Measures
from simulator.reports.results import Results
from simulator.reports.summary import COMPARED, MEASURES, TITLES, summarise, versus
from simulator.reports.table import arms, half_width
from simulator.reports.timeline import OTHERS

INK = "#010203"
"""Text and axes have this colour, which a page replaces by its own."""
GREY = "#8c8c8c"
WIDTH = 8.0
_PALETTE = (
    "#0b6e4f",
    "#3a7ebf",
    "#d1495b",
    "#edae49",
    "#7a5195",
    "#00a6a6",
    "#b5651d",
    "#ef5675",
    "#5c9e31",
    "#4d5bb5",
)
CDF_STEPS = 2000
"""A CDF has at most so many steps."""


def figures(results: Results) -> dict[str, Figure]:
    """Every picture that applies, by name."""
    by_name: dict[str, Figure] = {}
    for load, runs in results.runs.items():
        suffix = "" if len(results.runs) == 1 else f"-load-{load!r}"
        measured = next(iter(map(summarise, runs.values())), {})
        for name in measured:
            by_name[f"cdf-{name.removesuffix('_seconds').replace('_', '-')}{suffix}"] = _cdf(name, runs)
        shown = [name for name in COMPARED if name in measured]
        if shown:
            by_name[f"means{suffix}"] = _bars(shown, runs)
        if shown and len(runs) > 1:
            by_name[f"saved{suffix}"] = _saved(shown, runs, results.baseline)
        for policy, policy_runs in runs.items():
            if policy_runs[0].timeline is not None:
                by_name[f"timeline-{policy}{suffix}"] = _timeline(policy, policy_runs[0])
    if len(results.runs) > 1:
        by_name["loads"] = _loads(results)
    return by_name


def colours(policies: Sequence[str]) -> dict[str, str]:
    """Grey for fair sharing, a colour for each other."""
    others = [policy for policy in policies if policy != "fair"]
    return {"fair": GREY} | {policy: _PALETTE[i % len(_PALETTE)] for i, policy in enumerate(others)}


def _figure(height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained", dpi=110)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _finish(axis: Axes, *, title: str, x: str = "", y: str = "") -> None:
    axis.set_title(title, color=INK, fontsize=10)
    axis.set_xlabel(x, color=INK)
    axis.set_ylabel(y, color=INK)
    axis.tick_params(colors=INK, labelcolor=INK)
    axis.grid(alpha=0.3, color=GREY)
    axis.set_axisbelow(True)
    for spine in axis.spines.values():
        spine.set_color(GREY)
    axis.patch.set_alpha(0.0)


def _legend(axis: Axes, **where: Any) -> None:
    axis.legend(labelcolor=INK, framealpha=0.0, fontsize=8, **where)


def _cdf(name: str, runs: Mapping[str, Sequence[Measures]]) -> Figure:
    figure, (axis,) = _figure(4.0)
    shade = colours(list(runs))
    smallest = np.inf
    for policy, policy_runs in runs.items():
        values = np.sort(np.concatenate([MEASURES[name](run) for run in policy_runs]))
        if len(values):
            # A million iterations would look no other.
            steps = np.unique(np.linspace(0, len(values) - 1, CDF_STEPS).astype(np.int64))
            values, shares = values[steps], (steps + 1) / len(values)
            axis.step(values, shares, where="post", label=policy, color=shade[policy])
            smallest = min(smallest, float(values[0]))
    if 0 < smallest < np.inf:
        axis.set_xscale("log")
    _finish(axis, title=f"{TITLES[name]}: share of all at most that", x=TITLES[name], y="share")
    _legend(axis)
    return figure


def _bars(shown: Sequence[str], runs: Mapping[str, Sequence[Measures]]) -> Figure:
    figure, axes = _figure(3.6, len(shown))
    shade = colours(list(runs))
    for axis, name in zip(axes, shown, strict=True):
        for place, (policy, policy_runs) in enumerate(runs.items()):
            summary = summarise(policy_runs).get(name)
            if summary is not None and summary.mean is not None:
                half = half_width(summary.interval)
                axis.bar(place, summary.mean, color=shade[policy], yerr=half, ecolor=INK, capsize=3)
        axis.set_xticks(range(len(runs)), list(runs), rotation=40, ha="right")
        _finish(axis, title=f"mean {TITLES[name]}")
    return figure


def _saved(shown: Sequence[str], runs: Mapping[str, Sequence[Measures]], baseline: str) -> Figure:
    figure, axes = _figure(3.6, len(shown))
    shade = colours(list(runs))
    others = [policy for policy in runs if policy != baseline]
    for axis, name in zip(axes, shown, strict=True):
        for place, policy in enumerate(others):
            comparison = versus(runs[baseline], runs[policy]).get(name)
            if comparison is not None:
                error = (
                    None
                    if comparison.interval is None
                    else [[100 * arm] for arm in arms(comparison.reduction, comparison.interval)]
                )
                axis.bar(place, 100 * comparison.reduction, color=shade[policy], yerr=error, ecolor=INK, capsize=3)
        axis.axhline(0, color=INK, lw=0.8)
        axis.set_xticks(range(len(others)), others, rotation=40, ha="right")
        _finish(axis, title=f"{TITLES[name].removesuffix(' (s)')} saved to {baseline} (%)")
    return figure


def _loads(results: Results) -> Figure:
    first = next(iter(results.runs.values()))
    shown = [name for name in COMPARED if name in summarise(next(iter(first.values())))]
    figure, axes = _figure(3.6, len(shown))
    shade = colours(list(first))
    loads = sorted(load for load in results.runs if load is not None)
    for axis, name in zip(axes, shown, strict=True):
        for policy in first:
            summaries = [summarise(results.runs[load][policy]).get(name) for load in loads]
            means = [np.nan if s is None or s.mean is None else s.mean for s in summaries]
            halves = [0.0 if s is None else half_width(s.interval) or 0.0 for s in summaries]
            axis.errorbar(loads, means, yerr=halves, marker="o", ms=4, capsize=3, label=policy, color=shade[policy])
        _finish(axis, title=f"mean {TITLES[name]}", x="load")
    _legend(axes[0])
    return figure


def _timeline(policy: str, run: Measures) -> Figure:
    figure, (axis,) = _figure(3.4)
    timeline = run.timeline
    if timeline is not None and timeline.jobs:
        palette = [GREY if job == OTHERS else mpl.colormaps["tab10"](i) for i, job in enumerate(timeline.jobs)]
        axis.stackplot(
            timeline.edges[:-1],
            timeline.rates_bps / 1e9,
            labels=timeline.jobs,
            colors=palette,
            step="post",
            lw=0,
            alpha=0.9,
        )
        axis.set_xlim(timeline.edges[0], timeline.edges[-1])
        axis.set_ylim(0, timeline.capacity_bps / 1e9 * 1.02)
        _finish(axis, title=f"{policy}: {timeline.port} by job", x="seconds", y="Gbit/s")
        _legend(axis, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

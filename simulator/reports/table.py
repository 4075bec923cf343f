"""The tables on a terminal: one a measure, a row a policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from simulator.reports.measures import Measures
from simulator.reports.results import Results
from simulator.reports.summary import TITLES, Interval, Versus, summarise, versus


def tables(results: Results) -> list[Table]:
    """Every measure that applies, by load."""
    all_tables = []
    for load, runs in results.runs.items():
        where = results.title if load is None else f"{results.title}, load {load!r}"
        all_tables += [_measure(name, where, runs, results) for name in TITLES if _applies(name, runs)]
        all_tables.append(_running(where, runs))
    return all_tables


def number(value: float | None) -> str:
    """Four digits that count; a dash for none."""
    return "-" if value is None else f"{value:.4g}"


def percent(share: float, bounds: Interval) -> str:
    """A saving in percent, with half of its interval where there is one; with both ends of one that is skewed."""
    if bounds is None:
        return f"{100 * share:+.1f} %"
    below, above = arms(share, bounds)
    if math.isclose(below, above, rel_tol=1e-6, abs_tol=1e-9):
        return f"{100 * share:+.1f} ± {100 * below:.1f} %"
    low, high = (f"{100 * end:.{0 if abs(end) >= 1 else 1}f}" for end in bounds)
    return f"{100 * share:+.1f} % ({low} to {high})"


def half_width(bounds: Interval) -> float | None:
    """Half of an interval."""
    return None if bounds is None else (bounds[1] - bounds[0]) / 2


def arms(value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """How far the interval of a value reaches below it, and above; one that leaves the value out has an arm of 0."""
    return max(value - bounds[0], 0.0), max(bounds[1] - value, 0.0)


def _applies(name: str, runs: Mapping[str, Sequence[Measures]]) -> bool:
    return any(name in summarise(policy_runs) for policy_runs in runs.values())


def _measure(name: str, where: str, runs: Mapping[str, Sequence[Measures]], results: Results) -> Table:
    saved = {policy: versus(runs[results.baseline], policy_runs).get(name) for policy, policy_runs in runs.items()}
    summaries = {policy: summarise(policy_runs).get(name) for policy, policy_runs in runs.items()}
    several = len(results.seeds) > 1
    censored = any(summary is not None and summary.censored for summary in summaries.values())
    compared = len(runs) > 1 and any(saved.values())
    titles = ["policy", "mean ± 95 %" if several else "mean", "p50", "p95", "p99"]
    titles += ["censored"] if censored else []
    over_coflows = any(comparison is not None and comparison.over == "coflows" for comparison in saved.values())
    titles += [f"saved to {results.baseline}" + (" (coflows)" if over_coflows else "")] if compared else []
    table = _table(f"{TITLES[name]}: {where}", titles)
    for policy, summary in summaries.items():
        if summary is None:
            continue
        half = half_width(summary.interval)
        mean = number(summary.mean) + (f" ± {half:.2g}" if half is not None else "")
        cells = [policy, mean, number(summary.p50), number(summary.p95), number(summary.p99)]
        cells += [str(summary.censored)] if censored else []
        comparison = saved[policy]
        cells += [_saved(comparison, policy == results.baseline)] if compared else []
        table.add_row(*map(Text, cells))
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    return table


def _saved(comparison: Versus | None, is_baseline: bool) -> str:
    return "-" if comparison is None or is_baseline else percent(comparison.reduction, comparison.interval)


def _running(where: str, runs: Mapping[str, Sequence[Measures]]) -> Table:
    table = _table(f"the runs: {where}", ("policy", "makespan (s)", "plans", "CPU (s)"))
    for policy, policy_runs in runs.items():
        makespan = float(np.mean([run.makespan_seconds for run in policy_runs]))
        # Not the wall time: runs share the processors with each other.
        plans, cpu = sum(run.plans for run in policy_runs), sum(run.cpu_seconds for run in policy_runs)
        table.add_row(Text(policy), number(makespan), str(plans), f"{cpu:.2f}")
    return table

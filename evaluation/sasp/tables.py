"""The tables of the claim ``sasp``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

OVER = {"server": "a parameter server", "ranks": "all-reduce"}

_COLUMNS = (
    "", "iterations/s", "more", "iterations", "to target (s)", "saved", "95 %", "never", "metric", "at the end", "idle"
)  # fmt: skip
"""``more``: iterations a second than the best plain scheme; ``iterations``: to the target; ``never``: seeds that never
had it; ``metric``: where the run ended; ``at the end``: after all iterations, in the study; ``idle``: of processors."""


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """Yields a table for each setting and task, and one of all tasks together."""
    for setting in fields["settings"]:
        where = f"{OVER[setting['transport']]}, communication {setting['ratio']:g} times computing"
        for task, values in setting["tasks"].items():
            yield _task(f"{task}, {where}", values)
        yield _all(f"all tasks, {where}", setting["all"])


def _task(title: str, values: Mapping[str, Any]) -> Table:
    table = _table(f"{title} ({_said(values)})")
    for name, arm in values["arms"].items():
        target, pace = (arm["against_best_plain"][measure] for measure in ("target_seconds", "iteration_seconds"))
        table.add_row(
            name,
            f"{arm['iterations_a_second']:.2f}",
            more(pace),
            "-" if arm["iterations"] is None else f"{arm['iterations']:.0f}",
            f"{target['value']:.1f}",
            *saved(target),
            f"{arm['never']}/{len(arm['by_seed'])}",
            _number(arm["last_metric"]),
            _number(arm["metric_at_the_end_in_the_study"]),
            f"{arm['cpu_idle_share']:.0%}",
        )
    return table


def _number(metric: float | None) -> str:
    return "-" if metric is None else f"{metric:.3g}"


def _said(values: Mapping[str, Any]) -> str:
    """What the measured times stand beside."""
    bound = values["bound"]
    recursion = ", ".join(f"{name} {seconds:.3f}" for name, seconds in bound["iteration_seconds"].items())
    return (
        f"computing {values['pass_seconds']:.3f} s, links of {values['link_bps'] / 1e6:.1f} Mbit/s; an iteration by "
        f"the recursion: {recursion} s; with as many iterations at most {bound['reduction']:.0%} are saved, by "
        f"computing alone {bound['reduction_computing_alone']:.0%}; best plain: {values['best_plain']}"
    )


def _all(title: str, arms: Mapping[str, Any]) -> Table:
    table = _table(title)
    for name, measures in arms.items():
        target, pace = measures["target_seconds"], measures["iteration_seconds"]
        never = f"{target['own_never']}/{target['pairs']}"
        table.add_row(name, "", more(pace), "", "", *saved(target), never, "", "", "")
    return table


def _table(title: str) -> Table:
    table = Table(title=title)
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if number else "left")
    return table


def more(pace: Mapping[str, Any]) -> str:
    """Returns how many more iterations a second there are."""
    return f"{1 / (1 - pace['reduction']) - 1:+.0%}"


def saved(compared: Mapping[str, Any]) -> tuple[str, str]:
    """Returns what is saved, and its interval, which is empty where one seed has none."""
    low, high = compared["reduction_ci95"]
    return f"{compared['reduction']:.1%}", "" if math.isnan(low) else f"{low:.1%} to {high:.1%}"

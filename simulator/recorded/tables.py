"""The tables of a recording on a terminal: observed beside simulated, job by job, and what was assumed."""

from __future__ import annotations

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from simulator.recorded.estimate import Estimate
from simulator.reports.table import number

MOST_JOBS, MOST_POLICIES = 30, 5
"""Show so many jobs and policies; --json has all."""


def head(estimate: Estimate) -> Text:
    """Returns what was recorded, in a line."""
    recording, jobs = estimate.recording, len(estimate.recorded.estimated)
    runs = jobs + len(estimate.recorded.left_out)
    return Text(f"{recording.source}: {recording.seconds:.0f} s under {estimate.policy}, {jobs} of {runs} jobs\n")


def tables(estimate: Estimate) -> list[RenderableType]:
    """Returns the estimate's error, the jobs, what was assumed, and what was left out."""
    parts: list[RenderableType] = [_error(estimate), _jobs(estimate)] if estimate.error() else [_jobs(estimate)]
    parts.append(_sentences("assumed", estimate.assumed()))
    left_out = estimate.recorded.left_out
    if left_out:
        parts.append(_sentences("left out", [f"{job}: {why}" for job, why in left_out.items()]))
    return parts


def _error(estimate: Estimate) -> Table:
    table = _table(
        f"the estimate's error: {estimate.policy} as simulated against as observed",
        ("measure", "observed (s)", "simulated (s)", "difference", "of a job (median)", "jobs"),
    )
    for name, each in estimate.error().items():
        cells = (
            "JCT" if name == "jct" else name,
            number(each.observed),
            number(each.simulated),
            f"{100 * each.of_mean:+.1f} %",
            f"{100 * each.of_a_job:.1f} %",
            str(len(each.shares)),
        )
        table.add_row(*map(Text, cells))
    return table


def _jobs(estimate: Estimate) -> Table:
    shown = list(estimate.recorded.estimated.items())[:MOST_JOBS]
    runs = list(estimate.runs.items())[:MOST_POLICIES]
    table = _table("JCT (s) by job", ["job", "observed", *(policy for policy, _ in runs)])
    for name, each in shown:
        cells = [
            name if each.is_whole else f"{name} (a part)",
            number(estimate.observed.jct.get(name)),
            *(number(run.jct.get(name)) for _, run in runs),
        ]
        table.add_row(*map(Text, cells))
    if len(estimate.recorded.estimated) > len(shown) or len(estimate.runs) > len(runs):
        table.caption = "--json has all jobs and policies"
    return table


def _table(title: str, columns: tuple[str, ...] | list[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    return table


def _sentences(title: str, sentences: list[str]) -> Text:
    return Text("\n".join([f"{title}:", *(f"- {sentence}" for sentence in sentences), ""]))

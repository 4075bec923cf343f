"""The claim ``tensorlights``: parameter servers that share hosts, and what bands at their NICs do for the jobs.

As its authors measured it (X. S. Huang, A. Chen, T. S. E. Ng, HPBDC 2019): on as many hosts, with as many jobs, at
their placements (``evaluation.tensorlights.workload``). Theirs: up to 31 % off the mean completion time with all
servers on one host, and less the more the servers spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluation import plots, summary
from evaluation.tensorlights.figures import add_up
from evaluation.tensorlights.groups import BANDED, EACH, FAIR, ONE, ORDER, RR, TOGETHER, groups
from evaluation.tensorlights.tables import tables
from evaluation.tensorlights.workload import Placement, hosts_name, placement_key, placement_name
from topologies.box.datapath import Wanted

__all__ = ["DATAPATH", "add_up", "groups", "headline", "plot", "tables"]

DATAPATH: Wanted = "auto"


class _Measure(NamedTuple):
    """A measure of an arm: its name in the figures and in a headline, its unit, and what a claim says of it."""

    key: str
    metric: str
    unit: str
    words: str


_NAMES = {ONE.name: "TLs-One", RR.name: "TLs-RR", EACH.name: "TLs-One with a band for each job"}
_MEASURES = (
    _Measure("jct", "mean_jct", "s", "{} shortens the mean job completion time against fair sharing"),
    _Measure("barrier_wait", "mean_barrier_wait", "s", "{} shortens the mean wait at the workers' barrier"),
    _Measure("barrier_variance", "barrier_wait_variance", "s2", "{} evens the waits of a job's workers at a barrier"),
    _Measure("server_wait", "mean_server_wait", "s", "{} shortens the mean wait for the last push at the server"),
    _Measure("server_variance", "server_wait_variance", "s2", "{} evens the waits for the last push at the server"),
)


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns completion times at every placement, and waits where all servers stand on one host.

    The last ones are of a band for each job.
    """
    shown = [
        (figures, measure, name)
        for key, figures in fields["placements"].items()
        for measure in (_MEASURES if key == placement_key(TOGETHER) else _MEASURES[:1])
        for name in ORDER
    ]
    shown += [(fields["why"][BANDED.name], m, EACH.name) for m in _MEASURES] if BANDED.name in fields["why"] else []
    return [claim for figures, measure, name in shown if (claim := _claim(figures, name, measure)) is not None]


def _claim(figures: Mapping[str, Any], name: str, measure: _Measure) -> dict[str, Any] | None:
    """Returns a claim of one arm; None where the arm was not run, or the measure not taken."""
    arms = figures["arms"]
    fair, values = arms[FAIR.name][measure.key], arms.get(name, {}).get(measure.key)
    if fair is None or values is None:
        return None
    return summary.claim(
        f"{measure.words.format(_NAMES[name])}, {placement_name(tuple(figures['servers']))}",
        metric=measure.metric,
        unit=measure.unit,
        baseline=fair["mean"],
        value=values["mean"],
        interval=tuple(values["reduction_ci95"]),
    )


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """Draw the mean reduction of completion times by placement."""
    shown = {
        _panel(tuple(figures["servers"])): {name: figures["arms"][name] for name in ORDER if name in figures["arms"]}
        for figures in fields["placements"].values()
    }
    plots.reductions(shown, ORDER, folder / "tensorlights.png", measure="jct", what="mean completion time")


def _panel(placement: Placement) -> str:
    """Returns a placement as the title of a panel, which is narrow."""
    return f"servers on\n{hosts_name(placement)}".replace(", ", "\n").replace(" + ", "+")

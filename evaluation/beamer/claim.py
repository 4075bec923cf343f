"""The claim ``beamer``: what ``scripts/evaluate beamer`` measures, how it adds up, and how it is shown.

Optuna's studies by successive halving (``topologies.studies.tuner``), several at once (``evaluation.beamer.kinds``),
which share a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from evaluation import plots, summary
from evaluation.beamer import figures
from evaluation.beamer.groups import BEAMER, FAIR, FIFO_LM, SINCRONIA, groups
from evaluation.beamer.simulated import BOUNDS, simulated
from topologies.box.datapath import Wanted

__all__ = ["DATAPATH", "add_up", "groups", "headline", "plot", "tables"]

DATAPATH: Wanted = "auto"
ORDER = (BEAMER.name, SINCRONIA.name, FIFO_LM.name)

_NAMES = {FAIR.name: "per-flow fair sharing", SINCRONIA.name: "Sincronia", FIFO_LM.name: "FIFO-LM"}
_WORDS = {
    "sct": ("mean_sct", "Beamer shortens the mean stage completion time against {}"),
    "best": ("mean_time_to_best", "Beamer shortens the mean time to the best configuration against {}"),
}


def add_up(results: figures.Results) -> dict[str, Any]:
    """The arms, and each kind of studies with what the simulator says of the same seeds."""
    fields = figures.add_up(results)
    for name, values in fields["kinds"].items():
        values["simulated"] = simulated(name, [group.seed for group, _ in results if group.kind.name == name])
    return fields


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Beamer beside each of the others, for each kind of studies."""
    return [
        summary.claim(
            f"{words.format(_NAMES[other])}, {kind}",
            metric=metric,
            unit="s",
            baseline=comparison["baseline_mean"],
            value=comparison["mean"],
            interval=tuple(comparison["reduction_ci95"]),
        )
        | {"kind": kind}
        for kind, values in fields["kinds"].items()
        for measure, (metric, words) in _WORDS.items()
        for other, comparison in values["policies"][BEAMER.name][measure]["against"].items()
    ]


_COLUMNS = (
    "policy",
    "seeds",
    "SCT (s)",
    "by rung (s)",
    "saved",
    "95 %",
    "simulated",
    "best (s)",
    "saved",
    "95 %",
    "censored",
    "CPU",
)


def tables(fields: Mapping[str, Any]) -> Iterator[Table]:
    """A table for each kind of studies; savings are against fair sharing on the same seeds, and so are the bounds."""
    for kind, values in fields["kinds"].items():
        table = Table(title=f"studies that share a network, {kind}")
        for number, name in enumerate(_COLUMNS):
            table.add_column(name, justify="right" if number else "left")
        found = values.get("simulated", {})
        for name, policy in values["policies"].items():
            table.add_row(name, *_row(policy, _share(found.get(name))))
        for arm, text in BOUNDS.items():
            if arm in found:
                table.add_row(text, *[""] * (_COLUMNS.index("simulated") - 1), _share(found[arm]))
        yield table


def _row(policy: Mapping[str, Any], in_simulator: str) -> tuple[str, ...]:
    sct, best = policy["sct"], policy["best"]
    return (
        str(len(policy["seeds"])),
        f"{sct['mean']:.1f}",
        " ".join(f"{seconds:.1f}" for seconds in policy["sct_by_rung"].values()),
        *_saved(sct),
        in_simulator,
        f"{best['mean']:.1f}",
        *_saved(best),
        f"{policy['censored']}/{policy['stages']}",
        f"{policy['cpu_busy_share']:.0%}",
    )


def _share(saved: Mapping[str, Any] | None) -> str:
    return "" if saved is None else f"{saved['reduction']:.1%}"


def _saved(measure: Mapping[str, Any]) -> tuple[str, str]:
    against = measure["against"].get(FAIR.name)
    if against is None:
        return "", ""
    low, high = against["reduction_ci95"]
    return f"{against['reduction']:.1%}", f"{low:.1%} to {high:.1%}"


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """What each policy saves of fair sharing's mean SCT, for each kind of studies."""
    shown = {
        kind: {
            name: {"saved": policy["sct"]["against"][FAIR.name]}
            for name, policy in values["policies"].items()
            if FAIR.name in policy["sct"]["against"]
        }
        for kind, values in fields["kinds"].items()
    }
    plots.reductions(shown, ORDER, folder / "beamer.png", measure="saved", what="mean SCT")

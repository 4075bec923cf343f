"""The picture of ``scripts/evaluate sasp``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from evaluation.sasp.tables import OVER

_MEASURES = {"iteration_seconds": ("an iteration", "#7aa6c2"), "target_seconds": ("to the target", "#0b6e4f")}


def saved(settings: Sequence[Mapping[str, Any]], path: Path) -> None:
    """What each arm saves of the best plain scheme's time, in the mean over tasks, with 95 % intervals.

    A row of bars a setting; over each arm stands how many of its runs never had the target, where there are any.
    """
    figure, axes = plt.subplots(
        len(settings), 1, figsize=(10, 3.2 * len(settings)), squeeze=False, layout="constrained", dpi=110
    )
    for axis, setting in zip(axes[:, 0], settings, strict=True):
        _bars(axis, setting["all"])
        axis.set_title(f"{OVER[setting['transport']]}, communication {setting['ratio']:g} times computing")
    axes[0][0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def _bars(axis: Any, arms: Mapping[str, Any]) -> None:
    for offset, (measure, (text, colour)) in enumerate(_MEASURES.items()):
        places = [place + 0.4 * offset - 0.2 for place in range(len(arms))]
        compared = [measures[measure] for measures in arms.values()]
        shares = [100 * one["reduction"] for one in compared]
        bounds = [[_percent(end, one["reduction"]) for end in one["reduction_ci95"]] for one in compared]
        errors = [
            [max(share - low, 0) for share, (low, _) in zip(shares, bounds, strict=True)],
            [max(high - share, 0) for share, (_, high) in zip(shares, bounds, strict=True)],
        ]
        axis.bar(places, shares, 0.38, color=colour, label=text, yerr=errors, capsize=3)
    for place, measures in enumerate(arms.values()):
        if never := measures["target_seconds"]["own_never"]:
            axis.annotate(f"{never} never", (place, 0), ha="center", va="bottom", fontsize=8)
    axis.axhline(0, color="black", lw=0.8)
    axis.set_xticks(range(len(arms)), arms, rotation=25, ha="right")
    axis.set_ylabel("time saved (%)")
    axis.grid(axis="y", alpha=0.3)


def _percent(end: float | None, share: float) -> float:
    """Return one end of an interval; the share itself where there is no interval."""
    return 100 * (share if end is None or math.isnan(end) else end)

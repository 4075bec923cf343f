"""The picture of ``scripts/evaluate sasp``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

_MEASURES = {"iteration_seconds": ("an iteration", "#7aa6c2"), "target_seconds": ("to the target", "#0b6e4f")}


def saved(rates: Mapping[str, Mapping[str, Any]], order: Sequence[str], path: Path) -> None:
    """What each scheme saves of the plain one's time, the mean over families, with 95 % intervals; a panel a link rate.

    Where not all pairs could be compared, it says how many of how many.
    """
    figure, axes = plt.subplots(
        1, len(rates), figsize=(5 * len(rates), 4), sharey=True, squeeze=False, layout="constrained", dpi=110
    )
    for axis, (rate, schemes) in zip(axes[0], rates.items(), strict=True):
        shown = [scheme for scheme in order if schemes.get(scheme, {}).get("all")]
        for offset, (measure, (text, colour)) in enumerate(_MEASURES.items()):
            comparisons = [next(iter(schemes[scheme]["all"].values()))[measure] for scheme in shown]
            for place, comparison in enumerate(comparisons):
                if comparison["pairs_compared"] < comparison["pairs"]:
                    axis.annotate(
                        f"{comparison['pairs_compared']}/{comparison['pairs']}",
                        (place + 0.4 * offset - 0.2, 0),
                        xytext=(0, -3), textcoords="offset points", ha="center", va="top", fontsize=8,
                    )  # fmt: skip
                if comparison["reduction"] is None:
                    continue
                low, high = (
                    100 * (comparison["reduction"] if b is None or math.isnan(b) else b)
                    for b in comparison["reduction_ci95"]
                )
                share = 100 * comparison["reduction"]
                axis.bar(
                    place + 0.4 * offset - 0.2, share, 0.38, color=colour, label=text if place == 0 else None,
                    yerr=[[max(share - low, 0)], [max(high - share, 0)]], capsize=4,
                )  # fmt: skip
        axis.axhline(0, color="black", lw=0.8)
        axis.set_xticks(range(len(shown)), shown, rotation=20, ha="right")
        axis.set_title(rate)
        axis.grid(axis="y", alpha=0.3)
    axes[0][0].set_ylabel("time saved (%)")
    axes[0][0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)

"""Draws the picture of the claim ``deepprophet``: predicted against measured seconds, one dot for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt


def against(cases: Sequence[Mapping[str, Any]], families: Mapping[str, str], way: str, path: Path) -> None:
    """Draws single workers on the left and jobs of several ranks on the right, as predicted in ``way``.

    The grey band is 10 % wide in each direction.
    """
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", dpi=110)
    shown = {families[case["model"]] for case in cases}
    kinds = [kind for kind in dict.fromkeys(families.values()) if kind in shown]
    palette = plt.colormaps["tab10"]
    for axis, title, chosen in (
        (axes[0], "one worker", [case for case in cases if case["workers"] == 1]),
        (axes[1], "several ranks", [case for case in cases if case["workers"] > 1]),
    ):
        ends = [case["seconds"] for case in chosen] or [0.01, 1.0]
        low, high = 0.8 * min(ends), 1.25 * max(ends)
        axis.plot([low, high], [low, high], color="black", lw=0.8)
        axis.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="black", alpha=0.08)
        for number, kind in enumerate(kinds):
            own = [case for case in chosen if families[case["model"]] == kind]
            axis.plot(
                [case["seconds"] for case in own], [case["predicted"][way][0] for case in own],
                "o", ms=5, color=palette(number), label=kind,
            )  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel="measured (s)", ylabel="predicted (s)", title=title)
        axis.grid(alpha=0.3)
    axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)

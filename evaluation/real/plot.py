"""The picture of ``scripts/evaluate real``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

from evaluation.plots import COLOURS

mpl.use("Agg")
from matplotlib import pyplot as plt

_MEASURES = {"t90": "t90", "t95": "t95", "jct": "JCT"}


def by_seed(policies: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Each measure's mean over the jobs of a seed, a bar a policy and seed; a panel a measure."""
    figure, axes = plt.subplots(1, len(_MEASURES), figsize=(12, 4), layout="constrained", dpi=110)
    for axis, (measure, text) in zip(axes, _MEASURES.items(), strict=True):
        width = 0.8 / len(policies)
        for offset, (policy, values) in enumerate(policies.items()):
            places = [number + (offset - (len(policies) - 1) / 2) * width for number in range(len(values["seeds"]))]
            axis.bar(places, values[measure]["by_seed"], width, label=policy, color=COLOURS.get(policy))
        seeds = next(iter(policies.values()))["seeds"]
        axis.set_xticks(range(len(seeds)), [str(seed) for seed in seeds])
        axis.set(title=f"mean {text}", xlabel="seed", ylabel="s")
        axis.grid(axis="y", alpha=0.3)
    axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)

"""The pictures of the demo and of the evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from topologies.lab.results import LabResult

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {"fair": "#8c8c8c", "jpas": "#0b6e4f"}


def demo(result: LabResult, path: Path) -> None:
    """Accuracy over time of every job, an arm a panel, and under them t90 by job."""
    arms = list(result.arms)
    figure, axes = plt.subplot_mosaic(
        [[arm.policy for arm in arms], ["t90"] * len(arms)], figsize=(11, 7), layout="constrained", dpi=110
    )
    jobs = list(arms[0].jobs)
    palette = plt.colormaps["tab10" if len(jobs) <= 10 else "tab20"]
    longest = max((point[0] for arm in arms for job in arm.jobs.values() for point in job.history), default=1.0)
    for arm in arms:
        axis = axes[arm.policy]
        for number, job in enumerate(jobs):
            job_result = arm.jobs[job]
            axis.plot(
                [p[0] for p in job_result.history], [p[2] for p in job_result.history], lw=1, color=palette(number % 20)
            )
            if job_result.t90_seconds is not None:
                levels = [p[2] for p in job_result.history if p[0] >= job_result.t90_seconds][:1]
                axis.plot([job_result.t90_seconds] * len(levels), levels, "o", ms=6, color=palette(number % 20))
        axis.set(title=f"{arm.policy}: held-out accuracy (dot: t90)", xlim=(0, longest), ylim=(0, 1))
        axis.set_xlabel("seconds since the job's arrival")
        axis.grid(alpha=0.3)
    axis = axes["t90"]
    width = 0.8 / len(arms)
    for offset, arm in enumerate(arms):
        heights = [arm.jobs[job].t90_seconds or 0.0 for job in jobs]
        places = [number + (offset - (len(arms) - 1) / 2) * width for number in range(len(jobs))]
        axis.bar(places, heights, width, label=arm.policy, color=COLOURS.get(arm.policy))
    axis.set(ylabel="t90 (s)", title="seconds to 90 % of the converged accuracy")
    axis.set_xticks(range(len(jobs)), jobs, rotation=20, ha="right")
    axis.legend()
    axis.grid(axis="y", alpha=0.3)
    _save(figure, path)


def reductions(
    loads: Mapping[str, Mapping[str, Mapping[str, Any]]],
    order: Sequence[str],
    path: Path,
    *,
    measure: str = "t90",
    what: str = "mean t90",
) -> None:
    """Mean reduction of a measure against fair sharing with 95 % intervals, a panel a load.

    ``loads[load][policy]`` has ``reduction`` and ``reduction_ci95`` of ``measure``, which people call ``what``.
    """
    figure, axes = plt.subplots(
        1,
        len(loads),
        figsize=(12, 4),
        sharey=True,
        squeeze=False,
        layout="constrained",
        dpi=110,
        width_ratios=[max(len(policies), 2) for policies in loads.values()],
    )
    for axis, (load, policies) in zip(axes[0], loads.items(), strict=True):
        shown = [policy for policy in order if policy in policies]
        shares = [100 * policies[policy][measure]["reduction"] for policy in shown]
        bounds = [policies[policy][measure]["reduction_ci95"] for policy in shown]
        errors = [[max(s - 100 * b[0], 0), max(100 * b[1] - s, 0)] for s, b in zip(shares, bounds, strict=True)]
        colours = [COLOURS["jpas"] if policy == "jpas" else "#7aa6c2" for policy in shown]
        axis.bar(range(len(shown)), shares, color=colours, yerr=list(zip(*errors, strict=True)), capsize=4)
        axis.axhline(0, color="black", lw=0.8)
        axis.set_xticks(range(len(shown)), shown, rotation=30, ha="right")
        axis.set_title(load)
        axis.grid(axis="y", alpha=0.3)
    axes[0][0].set_ylabel(f"{what} saved against fair sharing (%)")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)

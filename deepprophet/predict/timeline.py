"""The picture of an iteration: what the device does, what is on the wire, and which of it decides how long it takes."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from deepprophet.predict.document import PredictionReport, span

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Patch

COLOURS = {
    "forward": "#7aa6c2", "backward": "#33658a", "copy back": "#8c8c8c", "optimizer": "#c2a878", "buffers": "#b5c99a",
    "bucket": "#0b6e4f", "reduction": "#7d5ba6", "gather": "#4d9078", "scatter": "#0b6e4f", "send": "#7d5ba6",
    "gradients": "#0b6e4f",
}  # fmt: skip
"""By what a span's name begins with."""


def draw(report: PredictionReport, path: Path) -> None:
    """Write the picture, of the kind that the file's name ends with. Raises OSError, and ValueError for a kind that
    is none.
    """
    played = report.prediction.played
    figure, axis = plt.subplots(figsize=(11, 3.2), layout="constrained", dpi=110)
    critical = set(played.critical)
    for place, part in enumerate(played.spans):
        lane = 1 + part.device if part.kind == "compute" else 0
        colour = COLOURS[_kind(part.name)]
        edge = "#c1121f" if place in critical else "white"
        axis.barh(
            lane, part.end - part.start, left=part.start, height=0.6, color=colour, edgecolor=edge,
            linewidth=1.4 if place in critical else 0.4, zorder=3 if place in critical else 2,
        )  # fmt: skip
        wide = part.end - part.start > 0.05 * played.seconds
        if part.name.startswith("bucket") and wide:
            axis.text(
                (part.start + part.end) / 2, lane, part.name[7:], ha="center", va="center", color="white", zorder=4
            )
    prediction = report.prediction
    axis.axvspan(prediction.low, prediction.high, color="#c1121f", alpha=0.08, zorder=0)
    axis.axvline(prediction.seconds, color="#c1121f", lw=1)
    devices = 1 + max((part.device for part in played.spans), default=0)
    axis.set_yticks(
        range(1 + devices),
        ["wire", *(["device"] if devices == 1 else [f"stage {number + 1}" for number in range(devices)])],
    )
    axis.set(xlim=(0, max(prediction.high, prediction.seconds) * 1.02), xlabel="seconds")
    workers = (
        f"{prediction.configuration.workers} workers, {prediction.configuration.architecture}"
        if prediction.configuration.workers > 1
        else "one worker"
    )
    axis.set_title(
        f"{report.model}, batch {report.batch_size}, {report.dtype}, {workers}: {span(prediction.seconds)} an iteration"
    )
    names = dict.fromkeys(_kind(part.name) for part in played.spans)
    legend = [Patch(color=COLOURS[name], label=name) for name in names]
    legend.append(Patch(facecolor="white", edgecolor="#c1121f", label="critical"))
    axis.legend(handles=legend, ncols=len(legend), loc="upper center", bbox_to_anchor=(0.5, -0.22), frameon=False)
    axis.grid(axis="x", alpha=0.3)
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def _kind(name: str) -> str:
    return next(kind for kind in COLOURS if name.startswith(kind))

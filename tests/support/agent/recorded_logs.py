"""The recordings of real runs, by the preset that reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.agent.logs import SAMPLES

RECORDED = SAMPLES / "recorded"

FILES: Mapping[str, tuple[str, ...]] = {
    "keras": (
        "keras-bars/output.log",
        "keras-terminal/terminal.log",
        "keras-lines/stdout.log",
        "keras2-bars/output.log",
        "keras2-terminal/terminal.log",
        "keras2-lines/stdout.log",
    ),
    "keras-csv": ("keras-bars/training.csv", "keras2-bars/training.csv"),
    "lightgbm": ("lightgbm/stdout.log",),
    "lightning": ("lightning-bars/output.log", "lightning-rich-terminal/terminal.log"),
    "lightning-csv": ("lightning-bars/lightning_logs/version_0/metrics.csv",),
    "mlflow": ("mlflow/mlruns/experiment/run/metrics/loss", "mlflow/mlruns/experiment/run/metrics/val_accuracy"),
    "mmengine": ("mmengine/output.log", "mmengine/work_dirs/run/run.log", "mmengine-iterations/output.log"),
    "mmengine-json": (
        "mmengine/work_dirs/run/vis_data/scalars.json",
        "mmengine-iterations/work_dirs/run/vis_data/scalars.json",
    ),
    "ray-tune": ("ray-tune/output.log",),
    "ray-tune-csv": ("ray-tune/results/parabola/trial_0/progress.csv",),
    "ray-tune-json": ("ray-tune/results/parabola/trial_0/result.json",),
    "stable-baselines3": ("stable-baselines3/stdout.log",),
    "stable-baselines3-csv": ("stable-baselines3/out/progress.csv",),
    "stable-baselines3-json": ("stable-baselines3/out/progress.json",),
    "tensorflow-estimator": ("tensorflow-estimator/stderr.log",),
    "ultralytics": ("ultralytics/output.log",),
    "ultralytics-csv": ("ultralytics/runs/train/results.csv",),
    "xgboost": ("xgboost/stdout.log",),
}
"""The files of recordings that a preset is the right one for."""


@dataclass(frozen=True)
class Recorded:
    """A recorded file, and what the training itself knew: its metric, and the value after so many iterations."""

    path: Path
    metric: str
    direction: str
    points: tuple[tuple[float, float], ...]


def recorded(name: str) -> Recorded:
    """Returns the recorded file of this name: the recording's folder, and the file in it."""
    folder, _, file = name.partition("/")
    known = json.loads((RECORDED / folder / "about.json").read_text())["files"][file]
    return Recorded(
        RECORDED / name, known["metric"], known["direction"], tuple((done, value) for done, value in known["points"])
    )

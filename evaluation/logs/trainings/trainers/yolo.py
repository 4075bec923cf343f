"""Ultralytics' YOLO from its configuration alone, on drawn squares: the bars of each epoch, and results.csv."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from ultralytics import YOLO
from ultralytics.utils.nms import TorchNMS

from evaluation.logs.truth import Series, Truth

# torchvision has no build without CUDA here. Its module can be imported where these operators are declared, and
# Ultralytics' own suppression takes their place.
for operator in ("nms", "qnms"):
    torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
importlib.import_module("torchvision").ops.nms = TorchNMS.nms

SIDE = 64
EPOCHS = 8
BATCH = 4
PICTURES = 64


def draw(folder: Path, count: int, seed: int) -> None:
    """Draw pictures with one white square each, and write where it is as Ultralytics wants it."""
    generator = np.random.default_rng(seed)
    for kind in ("images", "labels"):
        (folder / kind).mkdir(parents=True)
    for number in range(count):
        size, left, top = generator.integers(16, 33), *generator.integers(0, SIDE - 33, size=2)
        picture = np.zeros((SIDE, SIDE, 3), np.uint8)
        picture[top : top + size, left : left + size] = 255
        cv2.imwrite(str(folder / "images" / f"{number}.png"), picture)
        box = np.array([left + size / 2, top + size / 2, size, size]) / SIDE
        (folder / "labels" / f"{number}.txt").write_text("0 " + " ".join(f"{part:.4f}" for part in box) + "\n")


def main() -> None:
    """Train for EPOCHS epochs; the loss of held-out pictures is noted after each."""
    here = Path.cwd()
    draw(here / "data" / "train", PICTURES, 1)
    draw(here / "data" / "val", 16, 2)
    settings = {"path": str(here / "data"), "train": "train/images", "val": "val/images", "names": {"0": "square"}}
    Path("data.yaml").write_text(json.dumps(settings))
    run = Series("metrics/mAP50-95(B)", "max", EPOCHS, "epochs")

    def note(trainer: Any) -> None:
        run.add(trainer.epoch + 1, trainer.metrics[run.metric])

    model = YOLO("yolov8n.yaml")
    model.add_callback("on_fit_epoch_end", note)
    model.train(
        data="data.yaml", epochs=EPOCHS, imgsz=SIDE, batch=BATCH, device="cpu", workers=0, plots=False, seed=1,
        project=str(here / "runs"), name="train", optimizer="AdamW", lr0=0.002, warmup_epochs=0, mosaic=0.0, val=True,
    )  # fmt: skip
    del run.points[EPOCHS:]
    Truth(run, {"runs/train/results.csv": run}).write()


if __name__ == "__main__":
    main()

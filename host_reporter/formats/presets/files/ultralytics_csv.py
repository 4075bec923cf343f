"""Ultralytics' ``results.csv``: a row for each epoch."""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

PRESET = Preset(
    name="ultralytics-csv",
    title="Ultralytics YOLO, results.csv",
    source="https://docs.ultralytics.com/modes/train/",
    kind=Kind.CSV,
    fields=(
        Fields(
            needs=("epoch", "metrics/mAP50-95(B)"),
            epoch="epoch",
            metrics=("metrics/mAP50-95(B)", "metrics/mAP50-95(M)", "metrics/mAP50-95(P)"),
        ),
        Fields(needs=("epoch", "metrics/accuracy_top1"), epoch="epoch", metrics=("metrics/accuracy_top1",)),
        Fields(needs=("epoch", "metrics/mAP_0.5:0.95"), epoch="epoch", metrics=("metrics/mAP_0.5:0.95",)),
    ),
)

"""Lightning's CSVLogger: ``metrics.csv`` with a row for each log.

Steps count from 0, and a row has some of the metrics.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

PRESET = Preset(
    name="lightning-csv",
    title="Lightning, CSVLogger",
    source="https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.loggers.csv_logs.html",
    kind=Kind.CSV,
    fields=Fields(needs=("epoch", "step"), iteration="step", epoch="epoch", add={"iteration": 1}),
)

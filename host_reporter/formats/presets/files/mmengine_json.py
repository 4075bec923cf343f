"""MMEngine's ``scalars.json``: JSON lines of the training, whose ``step`` counts iterations, and of the validation.

In a validation's line ``step`` is an epoch, or 0; it belongs to the training's line before it. MMCV's ``.log.json``
counts the iterations of each epoch anew, and its lines of a validation have no ``data_time``.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

PRESET = Preset(
    name="mmengine-json",
    title="MMEngine, scalars.json",
    source="https://mmengine.readthedocs.io/en/latest/advanced_tutorials/logging.html",
    kind=Kind.JSONL,
    fields=(
        Fields(needs=("data_time", "iter", "step"), iteration="iter", epoch="epoch"),
        Fields(needs=("data_time", "step"), validation=True),
        Fields(needs=("mode", "epoch", "iter", "data_time"), step="iter", epoch="epoch"),
        Fields(needs=("mode", "epoch", "iter"), validation=True),
    ),
)

"""Detectron2: ``eta: 2:47:11  iter: 19  total_loss: 1.93  loss_cls: 1.2  ...``. Iterations count from 0."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="detectron2",
    title="Detectron2",
    source="https://detectron2.readthedocs.io/en/latest/modules/utils.html#detectron2.utils.events.CommonMetricPrinter",
    marks=r"\biter: \d{1,15}  total_loss: |\[\d\d/\d\d \d\d:\d\d:\d\d (?:d2|detectron2)\b",
    patterns=(
        Pattern(
            regex=rf"\biter: (?P<iteration>{NUMBER})  total_loss: (?P<metric>{NUMBER})",
            metric="total_loss",
            add={"iteration": 1},
        ),
        Pattern(regex=r"\bStarting training from iteration \d", begun=True),
        Pattern(regex=rf"\bMAX_ITER: (?P<total>{NUMBER})"),
        Pattern(regex=r"\bLoss became infinite or NaN at iteration", diverged=True),
    ),
)

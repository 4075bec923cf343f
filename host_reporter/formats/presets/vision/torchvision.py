"""torchvision's reference scripts, and those that took their logger (DETR, DeiT, MAE).

``Epoch: [0]  [  10/1252]  eta: 0:10:00  lr: 0.1  loss: 6.91 (6.93)  acc1: ...``. Epochs and batches count from 0.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="torchvision",
    title="torchvision's reference scripts",
    source="https://github.com/pytorch/vision/blob/main/references/classification/utils.py",
    marks=r"^Epoch: \[\d{1,9}\]\s{1,4}\[\s{0,12}\d{1,12}/\d{1,12}\]\s{1,4}eta: ",
    patterns=(
        Pattern(
            regex=r"^Epoch: \[(?P<epoch>\d{1,9})\]\s{1,4}\[\s{0,12}(?P<step>\d{1,12})/(?P<of>\d{1,12})\]\s{1,4}eta: "
            rf"(?:.{{1,300}}?\bloss: (?P<loss>{NUMBER}))?",
            add={"epoch": 1, "step": 1},
        ),
        Pattern(
            regex=rf"^(?:Test:\s{{1,4}}(?:EMA )?|\*\s{{1,4}})Acc@1 (?P<metric>{NUMBER})",
            metric="Acc@1",
            validation=True,
        ),
        Pattern(regex=r"^Loss is (?:nan|inf), stopping training", diverged=True),
        Pattern(regex=r"^Start training", begun=True),
    ),
)

"""PyTorch's example of ImageNet: ``Epoch: [0][  10/5005]  Time ...  Data ...  Loss 6.9 (6.9)  Acc@1 ...``."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="pytorch-imagenet",
    title="PyTorch's example of ImageNet",
    source="https://github.com/pytorch/examples/blob/main/imagenet/main.py",
    marks=r"^Epoch: \[\d{1,9}\]\[\s{0,12}\d{1,12}/\d{1,12}\]\s{1,4}Time\s.{1,200}?\bLoss\s{1,4}[\dni]",
    patterns=(
        Pattern(
            regex=r"^Epoch: \[(?P<epoch>\d{1,9})\]\[\s{0,12}(?P<step>\d{1,12})/(?P<of>\d{1,12})\]\s"
            rf".{{1,200}}?\bLoss\s{{1,4}}(?P<loss>{NUMBER})",
            add={"epoch": 1},
        ),
        Pattern(regex=rf"^\s?\*\s{{1,4}}Acc@1 (?P<metric>{NUMBER})", metric="Acc@1", validation=True),
        Pattern(regex=r"^=> (?:creating|using pre-trained) model ", begun=True),
    ),
)

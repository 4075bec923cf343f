"""timm's training: ``Train: 0 [ 50/1251 (  4%)]  Loss: 6.95 (6.95)  ...``, and ``Test: [ 195/195]  ...  Acc@1: ...``.

Epochs and batches count from 0. The last line of a test has the means over all of it, in brackets.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="timm",
    title="PyTorch Image Models (timm)",
    source="https://github.com/huggingface/pytorch-image-models/blob/main/train.py",
    marks=r"^Train: \d{1,9} \[\s{0,12}\d{1,12}/\d{1,12} \(\s{0,2}\d{1,3}%\)\]",
    patterns=(
        Pattern(
            regex=r"^Train: (?P<epoch>\d{1,9}) \[\s{0,12}(?P<step>\d{1,12})/(?P<of>\d{1,12}) \("
            rf"(?:.{{1,40}}?\bLoss: \s{{0,12}}(?P<loss>{NUMBER}))?",
            add={"epoch": 1, "step": 1},
        ),
        Pattern(
            regex=r"^Test: \[\s{0,12}(\d{1,12})/\1\].{1,200}?"
            rf"\bAcc@1: \s{{0,12}}\S{{1,12}} \(\s{{0,12}}(?P<metric>{NUMBER})\)",
            metric="Acc@1",
            validation=True,
        ),
        Pattern(regex=r"^Scheduled epochs: (?P<epochs>\d{1,9})\b", begun=True),
    ),
)

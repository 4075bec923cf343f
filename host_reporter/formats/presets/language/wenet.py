"""WeNet: ``DEBUG TRAIN Batch 0/100 loss 145.1 loss_att 111.1 ... rank 0``, and ``Epoch 0 CV info cv_loss 39.5``.

A line of the training names the epoch and the batch, from 0 on. How many batches an epoch has is not told, so an epoch
goes on where the one before has ended. Those of the validation (CV) count its own batches. Other ranks may write into
the same file.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_RANK = r"(?!.{0,400} rank [1-9]\d{0,5}\s*$)"

PRESET = Preset(
    name="wenet",
    title="WeNet",
    source="https://github.com/wenet-e2e/wenet/blob/main/wenet/utils/executor.py",
    marks=r"\b(?:TRAIN|CV) (?:\|[^|]{0,60}\| ?)?Batch \d{1,9}/\d{1,9} loss ",
    patterns=(
        Pattern(
            regex=rf"\bTRAIN (?:\|[^|]{{0,60}}\| ?)?Batch (?P<epoch>\d{{1,9}})/(?P<step>\d{{1,9}}) {_RANK}"
            rf"loss (?P<loss>{NUMBER})",
        ),
        Pattern(
            regex=rf"\bEpoch \d{{1,9}} CV info {_RANK}.{{0,200}}?\b(?:cv_)?loss (?P<metric>{NUMBER})",
            metric="validation loss",
        ),
        Pattern(regex=r"\bEpoch 0 TRAIN info ", begun=True),
    ),
)

"""MMEngine and MMCV: ``Epoch(train) [1][ 5/15]  lr: ...  loss: 1.45``, ``Iter(train) [ 5/45]``."""

from __future__ import annotations

from host_reporter.formats.preset import Pattern, Preset

_PLACE = r"\[(?P<epoch>\d{1,9})\]\[\s{0,12}(?P<step>\d{1,12})/(?P<of>\d{1,12})\]"

PRESET = Preset(
    name="mmengine",
    title="MMEngine and MMCV (OpenMMLab)",
    source="https://mmengine.readthedocs.io/en/latest/advanced_tutorials/logging.html",
    marks=r"\b(?:Epoch|Iter)\((?:train|val)\)\s{1,4}\[|- (?:mmengine|mmcv|mm[a-z0-9]{2,12}) - INFO - (?:Epoch|Iter) \[",
    patterns=(
        Pattern(regex=rf"\bEpoch(?:\(train\))?\s{{1,4}}{_PLACE}", pairs=True),
        Pattern(
            regex=r"\bIter(?:\(train\))?\s{1,4}\[\s{0,12}(?P<iteration>\d{1,12})/(?P<total>\d{1,12})\]", pairs=True
        ),
        Pattern(regex=r"\b(?:Epoch|Iter)\(val\)\s{1,4}\[", pairs=True, validation=True),
        Pattern(regex=r"\bworkflow: .{1,100}, max: (?P<epochs>\d{1,9}) epochs", begun=True),
        Pattern(regex=r"\bworkflow: .{1,100}, max: (?P<total>\d{1,12}) iters", begun=True),
        Pattern(regex=r"\bHooks will be executed in the following order", begun=True),
        Pattern(regex=r"\bmax_epochs=(?P<epochs>\d{1,9})\b"),
        Pattern(regex=r"\bmax_iters=(?P<total>\d{1,12})\b"),
    ),
)

"""Ultralytics YOLO: a bar for each epoch, ``1/8  0G  4.25  2.48  2.59  4  64: 37% ━━━━──── 6/16 2.0it/s``.

The validation's line begins with ``all``, below ``Class Images Instances Box(P R mAP50 mAP50-95)``. After the last
epoch the best weights are validated once more, which is no part of the run.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_PLACE = r"^\s{2,20}(?P<epoch>\d{1,9})/(?P<epochs>\d{1,9})\s{1,20}[\d.]{1,12}[GM]B?\s"
_BAR = (
    r".{1,160}?:\s{1,4}\d{1,3}%"
    r"(?:\|[^|]{0,200}\||\s[\u2500-\u259f]{1,200}+)\s{0,12}(?P<step>\d{1,12})/(?P<of>\d{1,12})\s"
)

PRESET = Preset(
    name="ultralytics",
    title="Ultralytics YOLO",
    source="https://docs.ultralytics.com/modes/train/",
    marks=r"^\s{2,20}Epoch\s{2,12}GPU_mem\s|^Ultralytics \S{1,20}(?: \S{1,20})? .{1,4}Python-",
    patterns=(
        Pattern(regex=rf"{_PLACE}(?=[^:]{{0,160}}?\snan\s){_BAR}", diverged=True),
        Pattern(regex=rf"{_PLACE}{_BAR}"),
        Pattern(
            regex=rf"^\s{{10,24}}all\s{{1,20}}\d{{1,12}}\s{{1,20}}\d{{1,12}}(?:\s{{1,20}}{NUMBER}){{3}}\s{{1,20}}(?P<metric>{NUMBER})(?:\s|$)",
            metric="metrics/mAP50-95(B)",
            direction="max",
        ),
        Pattern(
            regex=rf"^\s{{10,24}}all\s{{1,20}}(?P<metric>{NUMBER})\s{{1,20}}{NUMBER}\s{{0,4}}$",
            metric="metrics/accuracy_top1",
        ),
        Pattern(regex=r"^\d{1,9} epochs completed in [\d.]{1,12} hours", ended=True),
    ),
)

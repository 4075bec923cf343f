"""MaxText: ``completed step: 5, seconds: 1.15, TFLOP/s/device: 470.0, ..., loss: 9.512``. Steps are counted from 0."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="maxtext",
    title="MaxText",
    source="https://github.com/AI-Hypercomputer/maxtext/blob/main/src/maxtext/common/metric_logger.py",
    marks=r"\bcompleted step: \d{1,12}, seconds: |\beval metrics after step: \d",
    patterns=(
        Pattern(
            regex=rf"\beval metrics after step: (?P<iteration>{NUMBER}),.{{0,200}}?\b(?:eval_)?loss(?:=|: )"
            rf"(?P<metric>{NUMBER})",
            metric="eval_loss",
            add={"iteration": 1},
        ),
        Pattern(
            regex=rf"\bcompleted step: (?P<iteration>{NUMBER}), .{{1,400}}?, loss: (?P<loss>{NUMBER})",
            add={"iteration": 1},
        ),
        # All settings are printed at the start of each run, and after a restart.
        Pattern(regex=rf"\bConfig param steps: (?P<total>{NUMBER})", begun=True),
    ),
)

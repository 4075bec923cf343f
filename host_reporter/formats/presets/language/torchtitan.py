"""torchtitan: ``step: 10  loss:  7.7441  grad_norm: 2.1  memory: ...`` and ``validate step: 10  loss:  7.9 ...``."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_DATE = r"(?:(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - \S{1,60} - [A-Z]{4,8} - )?"
_LINE = rf"step:\s{{1,8}}(?P<iteration>{NUMBER})\s{{2}}loss:\s{{1,8}}(?P<metric>{NUMBER})\s{{2}}"

PRESET = Preset(
    name="torchtitan",
    title="torchtitan",
    source="https://github.com/pytorch/torchtitan/blob/main/torchtitan/components/metrics.py",
    marks=r"\bstep:\s{1,8}\d{1,12}\s{2}loss:\s{1,8}\S{1,20}\s{2}(?:grad_norm|memory):",
    patterns=(
        Pattern(regex=rf"{_DATE}\bvalidate {_LINE}", metric="validation loss"),
        Pattern(regex=rf"{_DATE}\b(?<!validate ){_LINE}", metric="loss"),
        Pattern(regex=rf"\bTrainer is initialized with .{{1,300}}\btotal steps (?P<total>{NUMBER})"),
        Pattern(regex=r"\bTraining starts at step \d", begun=True),
    ),
)

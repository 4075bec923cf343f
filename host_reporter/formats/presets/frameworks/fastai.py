"""fastai's table of epochs: a row has the epoch, from 0 on, two losses, the metrics and a time.

``epoch     train_loss  valid_loss  accuracy  time``; the names of the metrics are free.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="fastai",
    title="fastai",
    source="https://docs.fast.ai/learner.html",
    marks=r"^epoch\s{1,8}train_loss\s{1,12}valid_loss\s(?:.{0,400}\s)?time\s{0,8}$",
    patterns=(
        Pattern(
            regex=rf"^(?P<epoch>\d{{1,6}})\s{{2,12}}{NUMBER}\s{{2,12}}(?P<metric>{NUMBER})"
            r"(?:\s{2,12}[^\s:]{1,20}){0,20}\s{2,12}\d{1,3}:\d\d(?::\d\d)?\s{0,8}$",
            metric="valid_loss",
        ),
        Pattern(regex=r"^epoch\s{1,8}train_loss\s{1,12}valid_loss\s", begun=True),
    ),
)

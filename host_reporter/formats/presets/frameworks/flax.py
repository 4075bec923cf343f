"""Flax's examples with CLU's writer of metrics: ``[10] test_accuracy=0.7305, train_loss=0.4956``.

CLU's report of progress has the length of the run: ``Setting work unit notes: 9.3 steps/s, 33.3% (20/60), ETA: 0m``.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_NOTES = r"^Setting work unit notes: "
_METRICS = r"^\[{step}\] (?=[\w./@-]{{1,80}}=)"

PRESET = Preset(
    name="flax",
    title="Flax with CLU",
    source="https://github.com/google/CommonLoopUtils/blob/main/clu/metric_writers/logging_writer.py",
    marks=rf"{_NOTES}|{_METRICS.format(step='[0-9]{1,12}')}[\w./@-]{{1,80}}={NUMBER}(?:, [\w./@-]{{1,80}}=|$)",
    patterns=(
        Pattern(regex=_METRICS.format(step=rf"(?P<iteration>{NUMBER})"), pairs=True),
        Pattern(regex=rf"{_NOTES}.{{0,80}}\((?P<iteration>{NUMBER})/(?P<total>{NUMBER})\)"),
        Pattern(regex=rf"^epoch:\s{{1,4}}(?P<epoch>{NUMBER}), train_loss: ", pairs=True),
    ),
)

"""TensorFlow's estimators: ``loss = 0.24, step = 70 (0.276 sec)``, and a dict of each evaluation."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="tensorflow-estimator",
    title="TensorFlow estimators",
    source="https://github.com/tensorflow/estimator/blob/master/tensorflow_estimator/python/estimator/estimator.py",
    marks=r"\bSaving dict for global step \d{1,15}: "
    rf"|^INFO:tensorflow:loss = {NUMBER}, step = \d|\bloss = {NUMBER}, step = \d{{1,15}} \([\d.]{{1,12}} sec\)$",
    patterns=(
        Pattern(regex=rf"\bSaving dict for global step (?P<iteration>{NUMBER}): ", pairs=True, validation=True),
        Pattern(regex=rf"\bloss = (?P<loss>{NUMBER}), (?:.{{1,200}}?, )?step = (?P<iteration>{NUMBER})"),
        Pattern(regex=r"\bSaving checkpoints for 0 into ", begun=True),
        Pattern(regex=r"\bModel diverged with loss = NaN", diverged=True),
    ),
)

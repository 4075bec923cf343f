"""LightGBM's rounds: ``[2]  training's multi_logloss: 1.1  valid's multi_logloss: 1.2``, and those of its command line.

``[LightGBM] [Info] Iteration:1, valid_1 binary_logloss : 0.69``. Rounds count from 1. The names of data sets are free.
"""

from __future__ import annotations

import re

from host_reporter.formats.numbers import NUMBER, finite, number
from host_reporter.formats.preset import Preset
from host_reporter.formats.reading import Reading

_ROUND = re.compile(r"(?:\[(?P<round>\d{1,9})\]\s|\[LightGBM\] \[Info\] Iteration:\s?(?P<command>\d{1,9}), )")
_VALUE = re.compile(rf"(?P<name>[^\t:]{{1,120}}+):\s?(?P<value>{NUMBER})(?: \+ {NUMBER})?(?:\s|$)")
_BEGUN = re.compile(r"\[LightGBM\] \[Info\] Number of data points in the train set: ")


def read(text: str) -> Reading | None:
    """Returns the round of a line and its metrics, those of the training last."""
    if _BEGUN.match(text) is not None:
        return Reading(begun=True)
    begin = _ROUND.match(text)
    if begin is None:
        return None
    found = {match["name"].strip(): number(match["value"]) for match in _VALUE.finditer(text, begin.end())}
    metrics = {name: value for name, value in found.items() if value is not None}
    if not metrics:
        return None
    ordered = dict(sorted(metrics.items(), key=lambda metric: metric[0].startswith("train")))
    return Reading(iteration=finite(begin["round"] or begin["command"]), metrics=ordered)


PRESET = Preset(
    name="lightgbm",
    title="LightGBM",
    source="https://lightgbm.readthedocs.io/en/stable/pythonapi/lightgbm.log_evaluation.html",
    marks=r"^\[LightGBM\] \[|^\[\d{1,9}\]\s[^\t:]{1,80}'s [\w@. -]{1,60}: ",
    read=read,
)

"""XGBoost's rounds: ``[0]  train-rmse:1.08  eval-rmse:1.15``.

They count from 0. The last metric of a line is the one that early stopping watches.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_NAME = r"[\w.]{1,60}-[\w@.-]{1,60}:"
_METRICS = rf"\](?=\s{{1,4}}{_NAME})(?:.*\s)?{_NAME}(?P<metric>{NUMBER})(?:\+{NUMBER})?$"

PRESET = Preset(
    name="xgboost",
    title="XGBoost",
    source="https://xgboost.readthedocs.io/en/stable/python/python_api.html#xgboost.callback.EvaluationMonitor",
    marks=r"^\[\d{1,9}\]\t[\w.]{1,60}-[\w@.-]{1,60}:",
    patterns=(
        Pattern(regex=rf"^\[(?P<iteration>0){_METRICS}", begun=True, add={"iteration": 1}),
        Pattern(regex=rf"^\[(?P<iteration>\d{{1,9}}){_METRICS}", add={"iteration": 1}),
    ),
)

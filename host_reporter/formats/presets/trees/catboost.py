"""CatBoost's iterations: ``0:  learn: 0.67  test: 0.68  best: 0.68 (0)  total: 48ms  remaining: 48s``, from 0 on.

The lines name no metric, so that nothing tells whether larger values are better: a job file declares it. A metric that
is costly, such as AUC, is not computed for the training's data, and then lines have times alone.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_SETS = rf"(?:\tlearn: {NUMBER})?(?:\ttest\d{{0,3}}: {NUMBER}){{0,8}}?"
_ENDS = rf"(?:\tbest: {NUMBER} \(\d{{1,9}}\))?\ttotal: "

PRESET = Preset(
    name="catboost",
    title="CatBoost",
    source="https://catboost.ai/docs/en/concepts/python-reference_catboost_fit",
    marks=rf"^\d{{1,9}}:\t(?:(?:learn|test): {NUMBER}\t.{{0,400}})?total: \S{{1,20}}.{{0,40}}\tremaining: ",
    patterns=(
        Pattern(
            regex=rf"^(?P<iteration>\d{{1,9}}):{_SETS}\ttest\d{{0,3}}: (?P<metric>{NUMBER}){_ENDS}",
            metric="test",
            add={"iteration": 1},
        ),
        Pattern(
            regex=rf"^(?P<iteration>\d{{1,9}}):\tlearn: (?P<metric>{NUMBER}){_ENDS}",
            metric="learn",
            add={"iteration": 1},
        ),
        Pattern(regex=r"^(?P<iteration>\d{1,9}):\ttotal: ", add={"iteration": 1}),
        Pattern(regex=r"^Learning rate set to ", begun=True),
    ),
)

"""Keras 2 and 3: ``Epoch 1/5``, and bars or lines that count the epoch's batches.

Keras 3: ``14/14 ━━━━━━━━━━━━━━━━━━━━ 0s 5ms/step - accuracy: 0.39 - loss: 1.37 - val_loss: 0.83``; Keras 2:
``14/14 [====] - 0s 26ms/step - loss: 0.56``; with verbose=2, ``14/14 - 0s - loss: 0.56``. The metrics of a bar are
means of the epoch so far, of which the loss counts, and all of them at the epoch's end.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_BAR = r"(?:\s{1,4}(?:\[[=>.]{1,100}+\] -|\u2501{1,200}+|-))?\s{1,4}(?=ETA: |\d[\d:.]{0,12}(?:ms|us|s)\b|\d{1,4}:\d\d)"
_STEP = rf"^\s{{0,12}}(?P<step>\d{{1,12}})/(?:(?P<of>\d{{1,12}})|Unknown){_BAR}"
_END = rf"^\s{{0,12}}(?P<step>\d{{1,12}})/(?P<of>(?P=step)){_BAR}"

PRESET = Preset(
    name="keras",
    title="Keras 2 and 3",
    source="https://keras.io/api/models/model_training_apis/",
    marks=rf"^\s{{0,12}}\d{{1,12}}/(?:\d{{1,12}}|Unknown){_BAR}.{{1,60}}? - \w{{1,60}}: ",
    patterns=(
        Pattern(regex=r"^Epoch (?P<epoch>1)/(?P<epochs>\d{1,9})$", begun=True),
        Pattern(regex=r"^Epoch (?P<epoch>\d{1,9})/(?P<epochs>\d{1,9})$"),
        Pattern(regex=rf"{_END}(?=.{{1,60}}? - \w{{1,60}}: )", pairs=True),
        # Without names it is the bar of predict().
        Pattern(regex=rf"{_STEP}(?=.{{1,60}}? - \w{{1,60}}: )(?:.{{1,300}}? - loss: (?P<loss>{NUMBER}))?"),
    ),
)

"""NeMo: ``Training epoch 0, iteration 97/99 | lr: ... | global_step: 97 | reduced_train_loss: 6.265 | ...``.

Steps are counted from 0 there, and the last one is named. Other trainings have Lightning's bar with NeMo's timings: of
an epoch, or, with a second colon, of the run. After a validation its loss stands in each line until the next one.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_BAR = r".{0,200}?\|\s{0,12}(?!0/)"
"""After its last step the bar of an epoch is drawn once more with 0."""
_TIMED = r"\[(?=.{1,400}\btrain_step_timing in s=)"

PRESET = Preset(
    name="nemo",
    title="NVIDIA NeMo",
    source="https://github.com/NVIDIA/NeMo/blob/main/nemo/lightning/pytorch/callbacks/progress_printer.py",
    marks=r"\btrain_step_timing in s(?:: |=)\d|\bTraining epoch \d{1,9}, iteration \d{1,12}/\d{1,12} \|",
    patterns=(
        Pattern(
            regex=rf"\bTraining epoch \d{{1,9}}, iteration \d{{1,12}}/(?P<total>{NUMBER}) \|"
            rf".{{0,400}}?\bglobal_step: (?P<iteration>{NUMBER})",
            pairs=True,
            lasting=True,
            add={"iteration": 1, "total": 1},
        ),
        Pattern(
            regex=rf"\bEpoch \d{{1,9}}: :{_BAR}(?P<iteration>{NUMBER})/(?P<total>{NUMBER}) {_TIMED}",
            pairs=True,
            lasting=True,
        ),
        Pattern(
            regex=rf"\bEpoch (?P<epoch>{NUMBER}): {_BAR}(?P<step>{NUMBER})/(?P<of>{NUMBER}) {_TIMED}",
            pairs=True,
            lasting=True,
        ),
    ),
    beats=("lightning",),
)

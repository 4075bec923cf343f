"""NeMo: ``Training epoch 0, iteration 97/99 | lr: ... | global_step: 97 | reduced_train_loss: 6.265 | ...``.

Steps are counted from 0, and the last one is named. Version 1 has Lightning's bar with NeMo's names. After a validation
its loss stands in each line until the next one.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="nemo",
    title="NVIDIA NeMo",
    source="https://github.com/NVIDIA/NeMo/blob/main/nemo/lightning/pytorch/callbacks/progress_printer.py",
    marks=r"\breduced_train_loss(?:: |=)|\bTraining epoch \d{1,9}, iteration \d{1,12}/\d{1,12} \|",
    patterns=(
        Pattern(
            regex=rf"\bTraining epoch \d{{1,9}}, iteration \d{{1,12}}/(?P<total>{NUMBER}) \|"
            rf".{{0,400}}?\bglobal_step: (?P<iteration>{NUMBER})",
            pairs=True,
            lasting=True,
            add={"iteration": 1, "total": 1},
        ),
        Pattern(
            regex=rf"\bEpoch \d{{1,9}}: .{{0,200}}?\|\s{{0,12}}(?P<iteration>{NUMBER})/(?P<total>{NUMBER}) \["
            r"(?=.{1,400}reduced_train_loss=)",
            pairs=True,
            lasting=True,
        ),
    ),
    beats=("lightning",),
)

"""fairseq's three ways of logging: plain lines (``simple``), bars (``tqdm``), and objects in the lines (``json``).

Updates are counted over the whole run, whatever the gradient is accumulated over. ``train`` lines at the end of an
epoch have its average, which is another curve than that of the lines inside it.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Fields, Pattern, Preset

PRESET = Preset(
    name="fairseq",
    title="fairseq",
    source="https://github.com/facebookresearch/fairseq/blob/main/fairseq/logging/progress_bar.py",
    marks=r"\bloss[= ].{1,1200}\bnum_updates[= ]\d|['\"](?:train_|valid_)?num_updates['\"]: ['\"]\d"
    r"|\bvalid on '[^']{1,60}' subset\b",
    fields=(
        Fields(needs=("valid_num_updates", "valid_loss"), iteration="valid_num_updates", metrics=("valid_loss",)),
        Fields(needs=("num_updates", "loss"), iteration="num_updates", metrics=("loss",)),
        Fields(needs=("train_num_updates",), iteration="train_num_updates", metrics=()),
    ),
    patterns=(
        # A second set of the validation has a number in its name. It would mix two curves.
        Pattern(
            regex=rf"\bvalid on '(?!valid\d)[^']{{1,60}}' subset \|.{{0,200}}? (?:valid_)?loss (?P<metric>{NUMBER}) \|"
            rf".{{0,1200}}?\bnum_updates (?P<iteration>{NUMBER})",
            metric="valid_loss",
        ),
        Pattern(
            regex=rf"\bepoch\s{{1,3}}\d{{1,6}}:.{{0,200}}?\bloss=(?P<loss>{NUMBER}),"
            rf".{{0,1200}}?\bnum_updates=(?P<iteration>{NUMBER})"
        ),
        Pattern(regex=rf"\bepoch \d{{1,6}} \| (?!valid on).{{0,1200}}?\bnum_updates (?P<iteration>{NUMBER})"),
        Pattern(regex=r"\btraining on \d{1,6} devices \(GPUs", begun=True),
        Pattern(regex=r"\bdone training in \d", ended=True),
    ),
)

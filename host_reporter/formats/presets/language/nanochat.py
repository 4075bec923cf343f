"""nanochat: ``step 00010/21400 (0.05%) | loss: 9.02 | ...`` and ``Step 00250 | Validation bpb: 1.1024``.

The lines of steps are written after the step, those of validations before it. Fine-tuning has ``Step 00010/00701 |
Training loss: 1.21| ...``. Reinforcement learning has ``Step 3/467 | Average reward: 0.12 | ...``.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_STEP = rf"^[Ss]tep (?P<iteration>{NUMBER})(?:/(?P<total>{NUMBER}))?(?: \([^)]{{1,12}}\))? \| "

PRESET = Preset(
    name="nanochat",
    title="nanochat",
    source="https://github.com/karpathy/nanochat/blob/master/scripts/base_train.py",
    marks=r"^[Ss]tep \d{1,12}(?:/\d{1,12})?(?: \([^)]{1,12}\))? \| "
    r"(?:(?:Training )?loss: \S{1,20} ?\| (?:grad norm: \S{1,20} \| )?lrm: |"
    r"Validation (?:bpb|loss): |Average reward: )",
    patterns=(
        Pattern(regex=rf"{_STEP}Validation bpb: (?P<metric>{NUMBER})", metric="validation bpb"),
        Pattern(regex=rf"{_STEP}Validation loss: (?P<metric>{NUMBER})", metric="validation loss"),
        Pattern(regex=rf"{_STEP}(?:Training )?loss: (?P<loss>{NUMBER})", add={"iteration": 1}),
        Pattern(regex=rf"{_STEP}Average reward: (?P<metric>{NUMBER})", metric="reward", add={"iteration": 1}),
        Pattern(regex=r"^Tokens / micro-batch / rank: ", begun=True),
    ),
)

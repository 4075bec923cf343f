"""Megatron-LM's lines: `` iteration      122/  500000 | ... | lm loss: 2.504000E+00 | ...``, and those built on it.

An average that is not above zero is left out of the line. So a loss that is nan is missing, and the norm of the
gradient shows it.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_ITERATION = rf"^\s{{0,4}}iteration\s{{1,12}}(?P<iteration>{NUMBER})/\s{{0,12}}(?P<total>{NUMBER}) \|"

PRESET = Preset(
    name="megatron-lm",
    title="Megatron-LM, Megatron-DeepSpeed",
    source="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
    marks=r"^\s{0,4}iteration\s{1,12}\d+/\s{0,12}\d+ \| (?:consumed|elapsed time per iteration)"
    r"|validation loss at (?:iteration|the end of training)",
    patterns=(
        Pattern(
            regex=rf"validation loss at iteration (?P<iteration>{NUMBER})(?! on test set)[^|]{{0,40}}\|"
            rf" [\w ]{{0,40}}loss value: (?P<metric>{NUMBER})",
            metric="validation loss",
        ),
        Pattern(
            regex=_ITERATION + r"(?=.{1,1200}\| grad norm: nan .{1,200}skipped iterations:\s{0,8}0 )", diverged=True
        ),
        # Versions before 2 write the name and the value without a colon.
        Pattern(regex=_ITERATION + rf".{{1,300}}\| lm loss (?P<metric>{NUMBER}) \|", metric="lm loss"),
        Pattern(regex=_ITERATION, pairs=True),
        Pattern(regex=r"^\s{0,4}successfully loaded checkpoint from|^training \.\.\.$", begun=True),
    ),
    directions={"lm loss": "min"},
    beats=("deepspeed",),
)

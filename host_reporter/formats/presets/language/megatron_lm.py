"""Megatron-LM's lines: `` iteration      122/  500000 | ... | lm loss: 2.504000E+00 | ...``."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="megatron-lm",
    title="Megatron-LM",
    source="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py",
    marks=r"^\s{0,4}iteration\s{1,12}\d+/\s{0,12}\d+ \| consumed |validation loss at (?:iteration|the end of training)",
    patterns=(
        Pattern(regex=rf"validation loss at iteration (?P<iteration>{NUMBER})", pairs=True, validation=True),
        Pattern(
            regex=rf"^\s{{0,4}}iteration\s{{1,12}}(?P<iteration>{NUMBER})/\s{{0,12}}(?P<total>{NUMBER}) \|", pairs=True
        ),
    ),
)

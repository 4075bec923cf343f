"""nanoGPT: ``step 250: train loss 1.9644, val loss 2.0641`` and ``iter 250: loss 1.9812, time 52.11ms, mfu 17.21%``.

The validation is measured before the step of that number, the loss in it.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="nanogpt",
    title="nanoGPT",
    source="https://github.com/karpathy/nanoGPT/blob/master/train.py",
    marks=r"^step \d{1,12}: train loss \S{1,20}, val loss |^iter \d{1,12}: loss \S{1,20}, time \S{1,20}ms",
    patterns=(
        Pattern(
            regex=rf"^step (?P<iteration>{NUMBER}): train loss {NUMBER}, val loss (?P<metric>{NUMBER})",
            metric="val loss",
        ),
        Pattern(regex=rf"^iter (?P<iteration>{NUMBER}): loss (?P<loss>{NUMBER})", add={"iteration": 1}),
        # Its settings are printed: first the file of them, then what the command line changes.
        Pattern(regex=rf"^(?:Overriding: )?max_iters = (?P<total>{NUMBER})"),
        Pattern(regex=r"^tokens per iteration will be: ", begun=True),
    ),
)

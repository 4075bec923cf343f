"""Hugging Face's Trainer: dicts that it prints, and its progress bar.

``{'loss': 2.5, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.02}``. Later versions print the values in quotes.
The bar says how many steps are done; without it, the lines count epochs, with their fraction. LLaMA-Factory's output
is the same.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Fields, Pattern, Preset

DICT = r"\{['\"].{0,1200}?['\"](?:learning_rate|eval_runtime|train_runtime)['\"]: .{1,800}['\"]epoch['\"]:"
"""Some line of each such log matches it."""

PATTERNS = (
    # The bar of a run that goes on from a checkpoint is drawn with 0 at first.
    Pattern(regex=rf"^\s{{0,3}}\d{{1,3}}%\|[^|]{{0,200}}\|\s{{0,12}}(?!0/)(?P<step>{NUMBER})/(?P<total>{NUMBER}) \["),
    Pattern(regex=rf"\bTotal optimization steps = (?P<total>{NUMBER})"),
    Pattern(regex=rf"\bNum Epochs = (?P<epochs>{NUMBER})"),
    Pattern(regex=r"\*{5} Running training \*{5}", begun=True),
)
"""They read what the Trainer logs beside the dicts."""

PRESET = Preset(
    name="huggingface",
    title="Hugging Face Trainer",
    source="https://huggingface.co/docs/transformers/main_classes/callback#transformers.PrinterCallback",
    marks=DICT,
    fields=(
        Fields(needs=("epoch", "loss", "learning_rate"), epoch="epoch", may_be_late=True),
        Fields(needs=("epoch", "eval_runtime"), epoch="epoch", may_be_late=True),
        Fields(needs=("epoch", "train_runtime"), epoch="epoch", may_be_late=True),
    ),
    patterns=PATTERNS,
    beats=("deepspeed",),
)

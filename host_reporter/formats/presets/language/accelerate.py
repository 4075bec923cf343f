"""Loops on Hugging Face's Accelerate, as the examples of Transformers and Diffusers write them.

A bar of steps, and after each epoch ``epoch 0: perplexity: 20.1 eval_loss: 3.0`` or ``epoch 0: {'accuracy': 0.68}``.
Diffusers' bar has the loss: ``Steps:   1%|1   | 10/1000 [00:05<08:15, 2.0it/s, lr=1e-5, step_loss=0.12]``.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

_BAR = rf"\d{{1,3}}%\|[^|]{{0,200}}\|\s{{0,12}}(?!0/)(?P<iteration>{NUMBER})/(?P<total>{NUMBER}) \["
_EVALUATED = r"\bepoch (?P<epoch>\d{1,9}): "
_SCORE = r"\{.{0,200}?['\"](?:accuracy|matthews_correlation|pearson|mean_iou|overall_f1)['\"]: "
_AFTER_BAR = rf"(?:^\s{{0,3}}{_BAR}.{{0,200}}?)?"
"""The bar does not end its line before the program logs."""

PRESET = Preset(
    name="accelerate",
    title="Hugging Face Accelerate, Diffusers",
    source="https://github.com/huggingface/transformers/blob/main/examples/pytorch/language-modeling/run_clm_no_trainer.py",
    marks=rf"{_EVALUATED}(?:perplexity: \S{{1,30}} eval_loss: |{_SCORE})|^Steps:\s.{{1,300}}\bstep_loss=",
    patterns=(
        Pattern(regex=rf"^Steps:\s{{1,4}}{_BAR}.{{0,300}}\bstep_loss=(?P<metric>{NUMBER})", metric="step_loss"),
        Pattern(
            regex=rf"{_AFTER_BAR}{_EVALUATED}perplexity: \S{{1,30}} eval_loss: (?P<metric>{NUMBER})", metric="eval_loss"
        ),
        Pattern(regex=rf"{_AFTER_BAR}{_EVALUATED}{_SCORE}(?P<metric>{NUMBER})", metric="eval_score", direction="max"),
        Pattern(regex=rf"^\s{{0,3}}{_BAR}"),
        Pattern(regex=rf"\bTotal optimization steps = (?P<total>{NUMBER})"),
        Pattern(regex=r"\*{5} Running training \*{5}", begun=True),
    ),
    directions={"step_loss": "min"},
)

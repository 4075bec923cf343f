"""DeepSpeed's engine: ``[Rank 0] step=10, skipped=0, lr=[0.001], mom=[0.9]``, and that of pipelines, which has a loss.

The engine does not know the loss of other trainings. They print it themselves, between the engine's lines, and may
count batches that are accumulated. So steps are the engine's, and metrics are those of any line.
"""

from __future__ import annotations

from host_reporter.formats.matching import CompiledPattern
from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset
from host_reporter.formats.presets import general
from host_reporter.formats.reading import Reading

_PATTERNS = tuple(
    CompiledPattern(Pattern(regex=regex))
    for regex in (
        rf"^steps: (?P<iteration>{NUMBER}) loss: (?P<loss>{NUMBER})",
        rf"\[Rank \d{{1,6}}\] step=(?P<iteration>{NUMBER}), skipped={NUMBER}, lr=",
        rf"\bepoch=\d{{1,12}}/micro_step=\d{{1,12}}/global_step=(?P<iteration>{NUMBER}), ",
    )
)

_NO_METRICS = ("[", '"')
"""What lines of the engine begin with, and the settings that it prints."""


def read(text: str) -> Reading | None:
    """Returns what a line says: the engine's steps, or a metric of the training's own."""
    found = next((found for pattern in _PATTERNS if (found := pattern.read(text)) is not None), None)
    if found is not None:
        return found
    guess = None if text.lstrip()[:1] in _NO_METRICS else general.read(text)
    return Reading(metrics=guess.metrics) if guess is not None and guess.metrics else None


PRESET = Preset(
    name="deepspeed",
    title="DeepSpeed",
    source="https://www.deepspeed.ai/docs/config-json/#logging",
    marks=r"^steps: \d{1,12} loss: (?:\d{1,12}\.\d{4}|nan|inf)(?!\S)|\[Rank \d{1,6}\] step=\d{1,12}, skipped=\d"
    r"|\bepoch=\d{1,12}/micro_step=\d{1,12}/global_step=\d",
    read=read,
)

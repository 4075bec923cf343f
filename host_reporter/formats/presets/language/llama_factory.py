"""LLaMA-Factory's ``trainer_log.jsonl``: an object for each log, with steps, losses and the time that remains.

Its console prints what Hugging Face's Trainer prints.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

PRESET = Preset(
    name="llama-factory",
    title="LLaMA-Factory, trainer_log.jsonl",
    source="https://github.com/hiyouga/LLaMA-Factory/blob/main/src/llamafactory/train/callbacks.py",
    kind=Kind.JSONL,
    fields=Fields(
        needs=("current_steps", "total_steps"),
        iteration="current_steps",
        total="total_steps",
        epoch="epoch",
        metrics=("eval_loss", "loss", "reward", "accuracy"),
    ),
    files=("trainer_log.jsonl",),
)

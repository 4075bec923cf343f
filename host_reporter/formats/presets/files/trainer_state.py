"""Hugging Face's ``trainer_state.json``: a document with the list ``log_history``, one object for each log."""

from __future__ import annotations

from dataclasses import replace

from host_reporter.formats.preset import Fields, Kind, Preset

_LOGGED = Fields(
    needs=("log_history", "step"), iteration="step", epoch="epoch", total="max_steps", shared=("max_steps",)
)

PRESET = Preset(
    name="trainer-state",
    title="Hugging Face Trainer, trainer_state.json",
    source="https://huggingface.co/docs/transformers/main_classes/callback#transformers.TrainerState",
    kind=Kind.DOCUMENT,
    fields=(
        # Reinforcement learning: its loss is near zero all the time.
        replace(_LOGGED, needs=("log_history", "step", "reward_std"), metrics=("reward",)),
        _LOGGED,
    ),
    files=("trainer_state.json",),
)

"""TRL's reinforcement learning, which is built on Hugging Face's Trainer: the reward tells how well it goes.

``{'loss': 0.0, 'reward': 0.63, 'reward_std': 0.2, 'kl': 0.01, 'epoch': 0.3}`` (GRPO, RLOO) and
``{'objective/kl': 3.1, 'objective/rlhf_reward': 0.4, 'episode': 512, 'epoch': 0.1}`` (PPO). The loss of these is near
zero all the time. Supervised and preference training (SFT, DPO) print Hugging Face's dicts.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Preset
from host_reporter.formats.presets.language.huggingface import PATTERNS

_REWARDS = ("eval_reward", "reward", "eval_objective/rlhf_reward", "objective/rlhf_reward")

PRESET = Preset(
    name="trl",
    title="TRL (GRPO, RLOO, PPO)",
    source="https://huggingface.co/docs/trl/main/en/logging",
    marks=r"\{.{0,1500}['\"](?:reward_std|objective/rlhf_reward)['\"]: ",
    fields=tuple(Fields(needs=("epoch", name), epoch="epoch", metrics=(name,), may_be_late=True) for name in _REWARDS),
    patterns=PATTERNS,
    beats=("huggingface", "deepspeed"),
)

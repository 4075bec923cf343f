"""Stable-Baselines3's tables: ``|    ep_rew_mean     | 27.8   |``, and below it ``|    total_timesteps | 256    |``."""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="stable-baselines3",
    title="Stable-Baselines3",
    source="https://stable-baselines3.readthedocs.io/en/master/common/logger.html",
    marks=r"^\|\s{1,8}(?:time/)?total_timesteps\s{1,40}\|",
    patterns=(
        Pattern(regex=rf"^\|\s{{1,8}}(?:time/)?total_timesteps\s{{1,40}}\| (?P<iteration>{NUMBER})\s"),
        Pattern(
            regex=rf"^\|\s{{1,8}}(?:rollout/)?ep_rew_mean\s{{1,40}}\| (?P<metric>{NUMBER})\s",
            metric="rollout/ep_rew_mean",
        ),
        Pattern(regex=r"^\|\s{1,8}(?:train/)?loss\s{1,40}\| (?P<loss>nan|inf)\s", metric="train/loss"),
        Pattern(
            regex=rf"^Eval num_timesteps=(?P<iteration>{NUMBER}), episode_reward=(?P<metric>{NUMBER})",
            metric="eval/mean_reward",
        ),
        Pattern(regex=r"^Logging to \S", begun=True),
    ),
)

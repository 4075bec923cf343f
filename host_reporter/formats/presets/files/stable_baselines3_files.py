"""Stable-Baselines3's files: ``progress.csv`` and ``progress.json`` of its logger, and ``monitor.csv`` of the Monitor.

Iterations are steps of the environment. A row of ``monitor.csv`` is an episode: its reward ``r`` and its length ``l``.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

_LOGGER = "https://stable-baselines3.readthedocs.io/en/master/common/logger.html"
_FIELDS = Fields(
    needs=("time/total_timesteps",),
    iteration="time/total_timesteps",
    metrics=("eval/mean_reward", "rollout/ep_rew_mean"),
)

PROGRESS = Preset(
    name="stable-baselines3-csv",
    title="Stable-Baselines3, progress.csv",
    source=_LOGGER,
    kind=Kind.CSV,
    fields=_FIELDS,
)
JSON = Preset(
    name="stable-baselines3-json",
    title="Stable-Baselines3, progress.json",
    source=_LOGGER,
    kind=Kind.JSONL,
    fields=_FIELDS,
)
MONITOR = Preset(
    name="stable-baselines3-monitor",
    title="Stable-Baselines3, monitor.csv",
    source="https://stable-baselines3.readthedocs.io/en/master/common/monitor.html",
    kind=Kind.CSV,
    fields=Fields(needs=("r", "l", "t"), more="l", metrics=("r",)),
    directions={"r": "max"},
)

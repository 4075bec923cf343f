"""A trial's files of Ray Tune: ``result.json`` (JSON lines) and ``progress.csv``. Both have the same fields.

RLlib's trials are judged by the reward, not by the losses of their learners.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset

_NEEDS = ("training_iteration", "trial_id", "time_total_s")
_SOURCE = "https://docs.ray.io/en/latest/tune/tutorials/tune-output.html"


def _fields(separator: str) -> tuple[Fields, ...]:
    rewards = (f"env_runners{separator}episode_return_mean", f"env_runners{separator}episode_reward_mean")
    judged = tuple(
        Fields(needs=(*_NEEDS, reward), iteration="training_iteration", time="timestamp", metrics=(reward,))
        for reward in (*rewards, "episode_reward_mean")
    )
    return (*judged, Fields(needs=_NEEDS, iteration="training_iteration", time="timestamp"))


RESULT = Preset(
    name="ray-tune-json",
    title="Ray Tune, result.json",
    source=_SOURCE,
    kind=Kind.JSONL,
    fields=_fields("."),
)
PROGRESS = Preset(
    name="ray-tune-csv",
    title="Ray Tune, progress.csv",
    source=_SOURCE,
    kind=Kind.CSV,
    fields=_fields("/"),
)

"""Stable-Baselines3's PPO on CartPole: tables on standard output, progress.csv, JSON lines and TensorBoard."""

from __future__ import annotations

from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, configure

from evaluation.logs.truth import Series, Truth

STEPS = 256
ROUNDS = 6


class Watch(KVWriter):
    """Notes the mean reward of episodes each time the logger writes."""

    def __init__(self) -> None:
        self.run = Series("rollout/ep_rew_mean", "max", STEPS * ROUNDS)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """The logger calls this with everything that one table has."""
        del key_excluded
        self.run.add(step, key_values["rollout/ep_rew_mean"])

    def close(self) -> None:
        """Do nothing: there is no file."""


def main() -> None:
    """Train for ROUNDS rounds of STEPS steps."""
    watch = Watch()
    logger = configure("out", ["stdout", "csv", "json", "tensorboard"])
    logger.output_formats.append(watch)
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=STEPS, batch_size=64, n_epochs=4, seed=1, device="cpu")
    model.set_logger(logger)
    model.learn(STEPS * ROUNDS)
    Truth(watch.run, {f"out/{name}": watch.run for name in ("progress.csv", "progress.json")}).write()


if __name__ == "__main__":
    main()

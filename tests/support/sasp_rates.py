"""What a study could have said, for tests of the claim ``sasp``."""

from __future__ import annotations

from evaluation.sasp.rates import ArmRates, Compared, Rates, TaskRates
from evaluation.sasp.study.arms import ARMS

TARGET = 0.8


def task_rates(best_plain: str = "bsp+overlap") -> TaskRates:
    """A model of four layers; each arm has another learning rate."""
    arms = {
        name: ArmRates(0.001 * number, arm.strengths[-1], 100.0 + number, 1.5, Compared(110.0, 0.9))
        for number, (name, arm) in enumerate(ARMS.items(), 1)
    }
    return TaskRates(
        "adamw", 1000, TARGET, best_plain, (0.0, 0.1, 0.2, 0.3), (1.0, 0.8, 0.6, 0.4), (10, 20, 30, 40), arms
    )  # fmt: skip


def rates() -> Rates:
    """The best plain scheme differs by task, and the default by transport."""
    tasks = {"cnn": task_rates(), "transformer": task_rates("asp+overlap"), "mlp": task_rates()}
    return Rates(4, {"server": "partial, momentum", "ranks": "partial, local"}, tasks)

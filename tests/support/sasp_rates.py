"""What a study could have said, for tests of the claim ``sasp``."""

from __future__ import annotations

from typing import get_args

from evaluation.sasp.rates import ArmRates, Compared, Rates, TaskRates
from evaluation.sasp.study.arms import ARMS, Transport
from evaluation.sasp.study.chosen import wanted_of

TARGET = 0.8


def task_rates() -> TaskRates:
    """A model of four layers; each arm has another learning rate over each transport."""
    transports: tuple[Transport, ...] = get_args(Transport)
    arms = {
        over: {
            name: ArmRates(rate * number, ARMS[name].strengths[-1], 100.0 + number, 1.5, Compared(110.0, 0.9))
            for number, name in enumerate(wanted_of(over), 1)
        }
        for over, rate in zip(transports, (0.001, 0.002), strict=True)
    }
    return TaskRates("adamw", 1000, TARGET, (0.0, 0.1, 0.2, 0.3), (1.0, 0.8, 0.6, 0.4), (10, 20, 30, 40), arms)


def rates() -> Rates:
    """The default differs by transport."""
    tasks = {name: task_rates() for name in ("cnn", "transformer", "mlp")}
    return Rates(4, {"server": "partial, momentum", "ranks": "partial, local"}, tasks)

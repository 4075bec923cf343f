"""Runs for families: curves as trainings draw them, and what is kept of them."""

from __future__ import annotations

import math
from typing import Any

from controller.families.run import EarlierRun, Ending
from controller.model import Progress


def rising(length: int = 100, *, end: float = 0.9, scale: float = 10.0) -> list[float]:
    """Accuracy after each iteration: exponential toward ``end``. 90 % of it come after 2.3 ``scale`` iterations."""
    return [end * (1 - math.exp(-k / scale)) for k in range(1, length + 1)]


def reported(curve: list[float], every: int = 1) -> list[Progress]:
    return [Progress(float(k), 10.0 * k, metric) for k, metric in enumerate(curve, start=1) if k % every == 0]


def earlier(job: str = "a", ended_at: float = 0.0, **parts: Any) -> EarlierRun:
    """A run that finished: 90 % after 20 of 100 iterations, at an accuracy of 0.9."""
    fields: dict[str, Any] = {
        "began": 0.0,
        "ending": Ending.FINISHED,
        "metric": "accuracy",
        "direction": "max",
        "length": 100.0,
        "converged": 0.9,
        "t90": 20.0,
        "t95": 30.0,
        "curve": ((1.0, 0.1), (100.0, 0.9)),
    }
    return EarlierRun(job, ended_at=ended_at, **fields | parts)

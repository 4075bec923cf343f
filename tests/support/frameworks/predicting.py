"""What ``trainyard predict`` answers in the tests with PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.paths import SUPPORT

HERE = SUPPORT / "frameworks"
Predict = Callable[..., tuple[int, str, str]]


def document(told: tuple[int, str, str]) -> dict[str, Any]:
    assert told[0] == 0, told[2]
    return json.loads(told[1])


def known_by(prediction: dict[str, Any]) -> set[str]:
    return {part["known_by"] for part in prediction["unseen_operators"]}

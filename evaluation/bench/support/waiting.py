"""Waiting for what another process, thread or host does: one helper, which raises when it does not happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from topologies.box.datapath import inside_box

T = TypeVar("T")
EVERY_SECONDS = 0.1 if inside_box() else 0.02
"""Look so often. A box has one processor, and a look takes it from what is waited for."""


def wait_until(
    condition: Callable[[], T],
    seconds: float = 20.0,
    *,
    what: str = "it",
    every: float = EVERY_SECONDS,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Return the first true answer of ``condition``.

    Raises AssertionError after so many seconds. ``sleep`` is that of the test's loop: ``eventlet.sleep`` where green
    threads must go on.
    """
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds:g} s; the last answer was {answer!r}")
        sleep(every)
    return answer

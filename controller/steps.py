"""Runs work that is done in steps: other green threads go on after each TURN_SECONDS."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import eventlet
import eventlet.semaphore

from controller.pieces import Steps

T = TypeVar("T")
TURN_SECONDS = 0.005


class Pause:
    """Lets others go on, timeouts included, whenever it is called ``TURN_SECONDS`` or more after the last time."""

    def __init__(self) -> None:
        self._until = time.monotonic() + TURN_SECONDS

    def __call__(self) -> None:
        """Let others go on, if it is time."""
        if time.monotonic() >= self._until:
            eventlet.sleep(0)
            self._until = time.monotonic() + TURN_SECONDS


def in_steps(steps: Steps[T]) -> T:
    """Returns the result of some steps.

    Others go on after every ``TURN_SECONDS``. Steps that end sooner let nobody else run.
    """
    pause = Pause()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        pause()


class Turns:
    """Lets one green thread at a time work for the same name; the others wait in order."""

    def __init__(self) -> None:
        self._locks: dict[str, eventlet.semaphore.Semaphore] = {}
        self._users: Counter[str] = Counter()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Hold the turn for ``name``."""
        self._users[name] += 1
        try:
            with self._locks.setdefault(name, eventlet.semaphore.Semaphore()):
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]

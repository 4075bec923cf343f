"""The moments of a task's iterations, in seconds by the monotonic clock, which all hosts of a testbed share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class WorkerMoments:
    """The moments of a worker.

    In iteration k (from 0) the worker had the model from ``ready[k]`` on, and had computed at ``entered[k]``. A run
    that ends well has one more model than it has iterations: the last pull.
    """

    ready: tuple[float, ...]
    entered: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ServerMoments:
    """The moments of a server.

    It had the push of rank r in iteration k (from 0) at ``pushed[r - 1][k]``, and began to answer at ``opened[k]``.
    """

    pushed: tuple[tuple[float, ...], ...]
    opened: tuple[float, ...]


class Record:
    """The record of a task whose moments nobody wants: every method does nothing."""

    wants_arrivals: ClassVar[bool] = False
    """Whether the server must read messages in the order in which they come. This takes more system calls."""

    def ready(self, moment: float) -> None:
        """Note that the worker has had the model since ``moment``."""

    def entered(self) -> None:
        """Note that the worker has computed, and so comes to the barrier."""

    def pushed(self, rank: int) -> None:
        """Note that the server has the push of a worker. The threads of several workers may call this at once."""

    def opened(self) -> None:
        """Note that the server has all pushes, and so opens the barrier."""

    def moments(self) -> WorkerMoments | ServerMoments | None:
        """Returns the moments so far; None where nobody wants them."""
        return None


NOTHING = Record()
"""All tasks without a record share this one."""


class WorkerRecord(Record):
    """The record of a worker."""

    def __init__(self) -> None:
        self._ready: list[float] = []
        self._entered: list[float] = []

    def ready(self, moment: float) -> None:
        """Note that the worker has had the model since ``moment``."""
        self._ready.append(round(moment, _DIGITS))

    def entered(self) -> None:
        """Note that the worker has computed, and so comes to the barrier."""
        self._entered.append(_now())

    def moments(self) -> WorkerMoments:
        """Returns the moments so far."""
        return WorkerMoments(tuple(self._ready), tuple(self._entered))


class ServerRecord(Record):
    """The record of the server of so many ``workers``."""

    wants_arrivals = True

    def __init__(self, workers: int) -> None:
        self._pushed: list[list[float]] = [[] for _ in range(workers)]
        self._opened: list[float] = []

    def pushed(self, rank: int) -> None:
        """Note that the server has the push of a worker. Each worker's moments are a list of their own."""
        self._pushed[rank - 1].append(_now())

    def opened(self) -> None:
        """Note that the server has all pushes, and so opens the barrier."""
        self._opened.append(_now())

    def moments(self) -> ServerMoments:
        """Returns the moments so far."""
        return ServerMoments(tuple(map(tuple, self._pushed)), tuple(self._opened))


def _now() -> float:
    return round(time.monotonic(), _DIGITS)

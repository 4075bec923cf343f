"""Ends matches that take too long. Some patterns need exponential time on some lines.

``re`` keeps the interpreter to itself for a whole match: no other thread runs, no lease is renewed. But it asks for
signals while it matches, and a handler that raises ends the match. So a timer of the process's own processor time ticks
while lines are parsed; a match that is still the same one at two ticks is ended. That costs a line next to nothing,
where matching in a process of its own would copy every line of every log, and have to be killed all the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeVar

TICK_SECONDS = 0.05
"""The period of the timer, in processor time; a match is ended after one to two periods."""

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


class Overrun(Exception):  # noqa: N818 - what happened to a match, not a fault of the agent
    """A calculation took too long and was ended."""


class MatchLimit:
    """``with limit: limit.run(match, line)``, a step at a time. Only in the main thread: elsewhere nothing is ended."""

    def __init__(self) -> None:
        self._is_running = False
        self._step = self._seen = 0
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGVTALRM, self._tick)

    def __enter__(self) -> Self:
        self._set(TICK_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._set(0.0)

    def run(self, step: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
        """One step. Raises Overrun."""
        self._step += 1
        self._is_running = True
        try:
            return step(argument)
        finally:
            self._is_running = False

    def _tick(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_running and self._seen == self._step:
            # From here on nothing may raise once more: the step is over.
            self._is_running = False
            raise Overrun
        self._seen = self._step

    def _set(self, seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)

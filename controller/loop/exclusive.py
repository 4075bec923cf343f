"""One plan at a time, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import eventlet
import eventlet.event
import eventlet.semaphore

T = TypeVar("T")


class Exclusive:
    """Runs what makes plans, one after the other: a policy's memory must not be changed by two threads at once."""

    def __init__(self) -> None:
        self._planning = eventlet.semaphore.Semaphore()

    def run(self, act: Callable[[], T]) -> T:
        """Returns the result of ``act``, which runs while no other plan is made. Raises what ``act`` raises.

        ``act`` has a green thread of its own. A stop may end the caller; that thread then goes on with its plan, and
        the next plan must wait for it.
        """
        outcome = eventlet.event.Event()

        def run() -> None:
            try:
                outcome.send(act())
            except Exception as error:  # it is raised again by outcome.wait()
                outcome.send_exception(error)
            finally:
                self._planning.release()

        self._planning.acquire()
        eventlet.spawn_n(run)
        result: T = outcome.wait()
        return result

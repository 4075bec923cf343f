"""The stop: a sequence of steps with a time limit each, so that nothing acknowledged is lost and no step blocks it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import eventlet
import eventlet.event

LOG = logging.getLogger("trainyard.stop")


@dataclass(frozen=True)
class Step:
    """One step: ``what`` it does, in words for the log, and how many seconds it may take.

    ``act`` does it. Where it fails, it logs what it could not do, and returns False.
    """

    what: str
    seconds: float
    act: Callable[[], bool | None]


class Stop:
    """Runs ``steps`` in their order, once. A step that fails or takes too long does not keep the next from running."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._outcome: eventlet.event.Event | None = None

    def run(self) -> bool:
        """Stop; returns whether every step was done. A second caller waits for the first."""
        if self._outcome is None:
            self._outcome = eventlet.event.Event()
            outcomes = [_is_done(step) for step in self._steps]
            self._outcome.send(all(outcomes))
        return bool(self._outcome.wait())


def _is_done(step: Step) -> bool:
    try:
        with eventlet.Timeout(step.seconds):
            return step.act() is not False
    except eventlet.Timeout:
        LOG.error("the stop goes on although this takes over %g s: %s", step.seconds, step.what)
    except Exception:
        LOG.exception("the stop goes on although this failed: %s", step.what)
    return False

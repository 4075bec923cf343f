"""A thread that checks in each period of the controller whether the agent's marks and tree are unchanged."""

from __future__ import annotations

from collections.abc import Callable

from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.worker import Worker

STOP_SECONDS = 6.0


class Reconciler:
    """Makes ``enforcement`` repair what other programs have changed.

    ``period`` returns the seconds between two checks. ``failed`` is called with a fault that ended the thread.
    ``marked`` is told after each check what the host marks.
    """

    def __init__(
        self,
        enforcement: Enforcement,
        *,
        period: Callable[[], float],
        failed: Callable[[Exception], None],
        marked: Callable[[Marking], None],
    ) -> None:
        self._enforcement = enforcement
        self._period = period
        self._marked = marked
        self._worker = Worker("reconciler", self._work, failed=failed)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def stop(self) -> None:
        """Stop the thread within STOP_SECONDS."""
        self._worker.stop(STOP_SECONDS)

    def _work(self) -> None:
        while not self._worker.wait(self._period()):
            self._enforcement.reconcile()
            self._marked(self._enforcement.marking)

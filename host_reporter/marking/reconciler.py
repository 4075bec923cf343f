"""A thread that looks, once in the controller's period, whether the host still has what the agent installed there."""

from __future__ import annotations

from collections.abc import Callable

from host_reporter.marking.enforcement import Enforcement
from host_reporter.worker import Worker

STOP_SECONDS = 6.0


class Reconciler:
    """Has ``enforcement`` put back what others have changed. ``period`` returns the seconds between two looks;
    ``failed`` is called with a fault that ended the thread.
    """

    def __init__(
        self, enforcement: Enforcement, *, period: Callable[[], float], failed: Callable[[Exception], None]
    ) -> None:
        self._enforcement = enforcement
        self._period = period
        self._worker = Worker("reconciler", self._work, failed=failed)

    def start(self) -> None:
        """Begin."""
        self._worker.start()

    def stop(self) -> None:
        """End, within STOP_SECONDS."""
        self._worker.stop(STOP_SECONDS)

    def _work(self) -> None:
        while not self._worker.wait(self._period()):
            self._enforcement.reconcile()

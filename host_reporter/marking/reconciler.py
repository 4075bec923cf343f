"""A thread that looks, once in the controller's period, whether the host still has what the agent installed there."""

from __future__ import annotations

import threading
from collections.abc import Callable

from host_reporter.marking.enforcement import Enforcement

STOP_SECONDS = 6.0


class Reconciler:
    """Has ``enforcement`` put back what others have changed. ``period`` tells the seconds between two looks;
    ``failed`` is called with a fault that ended the thread.
    """

    def __init__(
        self, enforcement: Enforcement, *, period: Callable[[], float], failed: Callable[[Exception], None]
    ) -> None:
        self._enforcement = enforcement
        self._period = period
        self._failed = failed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, within STOP_SECONDS."""
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._period()):
                self._enforcement.reconcile()
        except Exception as error:
            # An agent that half works would be believed: the whole of it stops.
            self._failed(error)

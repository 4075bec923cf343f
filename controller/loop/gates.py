"""The switches' gates are kept open, or closed while all is paused, by a renewal in each period."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

import eventlet
import eventlet.event

from controller.loop.metrics import Metrics

LOG = logging.getLogger("trainyard.loop")


class GatedNetwork(Protocol):
    """The part of the dataplane that keeps gates."""

    def renew_gates(self) -> int:
        """Keep the switches' gates open, or closed while it is paused; returns how many are open."""


class Gates:
    """Renews the gates of ``network``. ``period_seconds`` returns the time between two renewals."""

    def __init__(self, network: GatedNetwork, period_seconds: Callable[[], float], metrics: Metrics) -> None:
        self._network = network
        self._period_seconds = period_seconds
        self._metrics = metrics
        self._changed = eventlet.event.Event()

    def wake(self) -> None:
        """Renew at once: the period has changed, or whether all is paused."""
        changed, self._changed = self._changed, eventlet.event.Event()
        changed.send()

    def run(self) -> None:
        """Renew for ever."""
        while True:
            due = time.monotonic() + self._period_seconds()
            # Taken before the renewal, so that a pause during it is not missed.
            changed = self._changed
            try:
                self._metrics.gate_renewals.inc(self._network.renew_gates())
            except Exception as error:  # one switch's fault must not close the gates of the others
                self._metrics.gate_errors.inc()
                LOG.error("the gates could not be renewed: %s: %s", type(error).__name__, error)
            with eventlet.Timeout(max(0.0, due - time.monotonic()), False):
                changed.wait()

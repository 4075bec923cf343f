"""Keras 3, on any backend: a callback for ``fit``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from host_reporter.integrations.meter import Folder, Meter


class Progress(keras.callbacks.Callback):
    """Tells each batch as an iteration, and ``metric``, a name among Keras's logs such as val_accuracy, each epoch."""

    def __init__(self, job: str | None = None, *, metric: str | None = None, directory: Folder = None) -> None:
        super().__init__()
        self._metric = metric
        self._meter = Meter(job, directory)
        self._begin = self._done = 0

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Iterations go on where the optimiser's do."""
        try:
            self._done = int(self.model.optimizer.iterations)
        except Exception:
            # An optimiser of one's own may not count; then they are this fit's.
            self._done = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Batches are counted from here."""
        self._begin = self._done

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """One more, or several where they are executed together."""
        self._done = self._begin + batch + 1
        self._meter.step(self._done)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The epoch's metric is there."""
        if self._metric is not None:
            self._meter.measured(self._done, (logs or {}).get(self._metric))

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """It is over."""
        self._meter.end()

"""Keras 3, on any backend: a callback for ``fit``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from host_reporter.integrations.meter import Folder, Meter


class Progress(keras.callbacks.Callback):
    """Reports each batch as an iteration, and after each epoch ``metric``, a name in Keras's logs (val_accuracy).

    ``target``: the value of the metric that you call done. A loss or a metric that is no finite number says that the
    job has diverged.
    """

    def __init__(
        self,
        job: str | None = None,
        *,
        metric: str | None = None,
        target: float | None = None,
        directory: Folder = None,
    ) -> None:
        super().__init__()
        self._metric = metric
        self._meter = Meter(job, directory, target=target)
        self._begin = self._done = 0

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Continue the count of iterations from the optimizer's own count."""
        try:
            self._done = int(self.model.optimizer.iterations)
        except Exception:
            # A custom optimizer may not count. The iterations of this fit are then counted from 0.
            self._done = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Note the iterations that were done before this epoch."""
        self._begin = self._done

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report the batches done. Keras may execute several of them in one call."""
        self._done = self._begin + batch + 1
        self._meter.step(self._done, (logs or {}).get("loss"))

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report the metric of the epoch."""
        if self._metric is not None:
            self._meter.measured(self._done, (logs or {}).get(self._metric))

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Report the end of the training."""
        self._meter.end()

"""Lightning, or pytorch_lightning where that alone is installed: a callback for the Trainer."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from host_reporter.integrations.meter import Folder, Meter


class Progress(Callback):
    """Tells each optimiser's step as an iteration, and ``metric``, a name that the module logs, at each validation.

    Of several ranks only the first tells, whichever way they were started.
    """

    def __init__(self, job: str | None = None, *, metric: str | None = None, directory: Folder = None) -> None:
        super().__init__()
        self._job, self._directory, self._metric = job, directory, metric
        # Made by the process that trains: the one that starts it may hand this callback on to others.
        self._meter: Meter | None = None
        self._told = -1

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The ranks are known by now."""
        self._meter = Meter(self._job, self._directory) if trainer.is_global_zero else None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Several batches may make one step."""
        if self._meter is not None and trainer.global_step != self._told:
            self._told = trainer.global_step
            self._meter.step(self._told)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The metric is there; not that of the few batches that are tried before the training."""
        self._measured(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Without a validation the metric is one of the training."""
        if not trainer.enable_validation:
            self._measured(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """It is over."""
        if self._meter is not None:
            self._meter.end()
            self._meter = None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """It is over, unless its launcher starts it again."""
        if self._meter is not None:
            self._meter.end(failed=True)
            self._meter = None

    def _measured(self, trainer: Any) -> None:
        if self._meter is not None and self._metric is not None and not trainer.sanity_checking:
            self._meter.measured(trainer.global_step, trainer.callback_metrics.get(self._metric))

"""Lightning, or pytorch_lightning where that alone is installed: a callback for the Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from host_reporter.integrations.meter import Folder, Meter


class Progress(Callback):
    """Reports each optimizer step as an iteration, and ``metric``, a name that the module logs, after each validation.

    Only rank 0 reports, in whichever way the ranks were started. ``target`` is the value of the metric that you call
    done. A loss or a metric that is no finite number says that the job has diverged.
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
        self._job, self._directory, self._metric, self._target = job, directory, metric, target
        # The training process creates the meter, because its launcher may copy this callback to other processes.
        self._meter: Meter | None = None
        self._reported_step = -1

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to report on rank 0; Lightning knows the ranks by now."""
        self._meter = Meter(self._job, self._directory, target=self._target) if trainer.is_global_zero else None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Report a step when it is complete; several batches may make one step."""
        if self._meter is not None and trainer.global_step != self._reported_step:
            self._reported_step = trainer.global_step
            self._meter.step(self._reported_step, outputs.get("loss") if isinstance(outputs, Mapping) else outputs)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the metric, except that of the sanity check before the training."""
        self._measured(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the metric of the training where there is no validation."""
        if not trainer.enable_validation:
            self._measured(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the end of the training."""
        if self._meter is not None:
            self._meter.end()
            self._meter = None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Report the end of the training, unless its launcher may start it again."""
        if self._meter is not None:
            self._meter.end(failed=True)
            self._meter = None

    def _measured(self, trainer: Any) -> None:
        if self._meter is not None and self._metric is not None and not trainer.sanity_checking:
            self._meter.measured(trainer.global_step, trainer.callback_metrics.get(self._metric))

"""Hugging Face Transformers: a callback for the Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from host_reporter.integrations.meter import Folder, Meter


class Progress(TrainerCallback):
    """Reports each step as an iteration, and ``metric``, a name in an evaluation's metrics (eval_accuracy) or the logs.

    Only rank 0 reports. ``target`` is the value of the metric that you call done. A logged loss or a metric that is no
    finite number says that the job has diverged.
    """

    def __init__(
        self,
        job: str | None = None,
        *,
        metric: str | None = None,
        target: float | None = None,
        directory: Folder = None,
    ) -> None:
        self._job, self._directory, self._metric, self._target = job, directory, metric, target
        self._meter: Meter | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin to report on rank 0; the Trainer knows the ranks by now."""
        first = state.is_world_process_zero
        self._meter = Meter(self._job, self._directory, target=self._target) if first else None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report a step, of however many batches."""
        if self._meter is not None:
            self._meter.step(state.global_step)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        """Report the metric of an evaluation."""
        self._report_metric(state, metrics)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Report a metric that the training logs, such as its loss."""
        # The metrics of an evaluation are logged too, and ``on_evaluate`` reports those.
        if logs is not None and not any(name.startswith("eval_") for name in logs):
            self._report_metric(state, logs)
            if self._meter is not None:
                self._meter.seen(logs.get("loss"))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the end of the training."""
        if self._meter is not None:
            self._meter.end()
            self._meter = None

    def _report_metric(self, state: Any, values: Mapping[str, Any] | None) -> None:
        if self._meter is not None and self._metric is not None and values and self._metric in values:
            self._meter.measured(state.global_step, values[self._metric])

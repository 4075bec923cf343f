"""Hugging Face Transformers: a callback for the Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback

from host_reporter.integrations.meter import Folder, Meter


class Progress(TrainerCallback):
    """Reports each step as an iteration, and ``metric``, a name in an evaluation's metrics (eval_accuracy) or the logs.

    Only rank 0 reports.
    """

    def __init__(self, job: str | None = None, *, metric: str | None = None, directory: Folder = None) -> None:
        self._job, self._directory, self._metric = job, directory, metric
        self._meter: Meter | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin to report on rank 0; the Trainer knows the ranks by now."""
        self._meter = Meter(self._job, self._directory) if state.is_world_process_zero else None

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

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the end of the training."""
        if self._meter is not None:
            self._meter.end()
            self._meter = None

    def _report_metric(self, state: Any, values: Mapping[str, Any] | None) -> None:
        if self._meter is not None and self._metric is not None and values and self._metric in values:
            self._meter.measured(state.global_step, values[self._metric])

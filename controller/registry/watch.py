"""The metric values whose crossing cannot wait for the next period."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Progress
from controller.registry.job.record import JobRecord
from controller.wire import MAX_METRIC, Threshold


class Watch:
    """What a policy asked to be told of: each job's value triggers once, until the policy names another."""

    def __init__(self) -> None:
        self._values: Mapping[str, float] = {}
        self._told: dict[str, float] = {}

    def set(self, values: Mapping[str, float]) -> None:
        """Take the values of a new plan; what was told of the same values stays told.

        No metric gets where a value is that no message could carry.
        """
        self._values = {job: value for job, value in values.items() if abs(value) <= MAX_METRIC}
        self._told = {job: value for job, value in self._told.items() if self._values.get(job) == value}

    def forget(self, job_id: str) -> None:
        """Begin anew with a job: it is another run now."""
        self._told.pop(job_id, None)

    def threshold(self, job: JobRecord) -> Threshold | None:
        """What the job's metric has yet to cross; None where nobody waits for that."""
        value = self._values.get(job.id)
        if value is None or self._told.get(job.id) == value:
            return None
        threshold = Threshold(metric=value, direction=job.spec.metric.direction)
        return None if _is_past(job.history.last_measured, threshold) else threshold

    def crosses(self, job: JobRecord, before: Progress | None) -> bool:
        """Whether the job's latest metric is past its value, while ``before`` was not, and nobody was told yet."""
        value = self._values.get(job.id)
        if value is None or self._told.get(job.id) == value:
            return False
        threshold = Threshold(metric=value, direction=job.spec.metric.direction)
        if not _is_past(job.history.last_measured, threshold) or _is_past(before, threshold):
            return False
        self._told[job.id] = value
        return True


def _is_past(point: Progress | None, threshold: Threshold) -> bool:
    return point is not None and threshold.is_reached(point.metric)

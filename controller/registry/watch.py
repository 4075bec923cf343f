"""The metric values whose crossing triggers a plan at once."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Progress
from controller.registry.job.record import JobRecord
from controller.wire import MAX_METRIC, Threshold


class Watch:
    """The values that a policy waits for, by job. Each triggers one plan, until the policy names another value."""

    def __init__(self) -> None:
        self._values: Mapping[str, float] = {}
        self._crossed: dict[str, float] = {}

    def set(self, values: Mapping[str, float]) -> None:
        """Replace the values by those of a new plan. A value that stays and has triggered a plan triggers no other.

        A value that no message could carry is left out: no metric reaches it.
        """
        self._values = {job: value for job, value in values.items() if abs(value) <= MAX_METRIC}
        self._crossed = {job: value for job, value in self._crossed.items() if self._values.get(job) == value}

    def forget(self, job_id: str) -> None:
        """Forget that a job has crossed its value, because a new run has begun."""
        self._crossed.pop(job_id, None)

    def threshold(self, job: JobRecord) -> Threshold | None:
        """Returns the value that the job's metric has yet to cross; None where no policy waits for it."""
        value = self._values.get(job.id)
        if value is None or self._crossed.get(job.id) == value:
            return None
        threshold = Threshold(metric=value, direction=job.spec.metric.direction)
        return None if _is_past(job.history.last_measured, threshold) else threshold

    def crosses(self, job: JobRecord, before: Progress | None) -> bool:
        """Returns whether the job's metric has crossed its value since ``before``. A value is crossed once."""
        value = self._values.get(job.id)
        if value is None or self._crossed.get(job.id) == value:
            return False
        threshold = Threshold(metric=value, direction=job.spec.metric.direction)
        if not _is_past(job.history.last_measured, threshold) or _is_past(before, threshold):
            return False
        self._crossed[job.id] = value
        return True


def _is_past(point: Progress | None, threshold: Threshold) -> bool:
    return point is not None and threshold.is_reached(point.metric)

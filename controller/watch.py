"""The metric values whose crossing cannot wait for the next period."""

from __future__ import annotations

from collections.abc import Mapping

from controller.job_record import JobRecord
from controller.model import Progress


class Watch:
    """What a policy asked to be told of: each job's value triggers once, until the policy names another."""

    def __init__(self) -> None:
        self._values: Mapping[str, float] = {}
        self._told: dict[str, float] = {}

    def set(self, values: Mapping[str, float]) -> None:
        """Take the values of a new plan; what was told of the same values stays told."""
        self._values = dict(values)
        self._told = {job: value for job, value in self._told.items() if self._values.get(job) == value}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._values

    def forget(self, job_id: str) -> None:
        """Begin anew with a job: it is another run now."""
        self._told.pop(job_id, None)

    def crosses(self, job: JobRecord, before: Progress | None) -> bool:
        """Whether the job's latest metric is past its value, while ``before`` was not, and nobody was told yet."""
        value, measured = self._values.get(job.id), job.history.last_measured
        if value is None or self._told.get(job.id) == value:
            return False
        direction = job.spec.metric.direction
        if not _is_past(measured, value, direction) or _is_past(before, value, direction):
            return False
        self._told[job.id] = value
        return True


def _is_past(point: Progress | None, value: float, direction: str) -> bool:
    if point is None or point.metric is None:
        return False
    return point.metric >= value if direction == "max" else point.metric <= value

"""A job's spec in a stage of its study, as the job's own progress tells it."""

from __future__ import annotations

from controller.wire import JobSpec


class StagedSpec(JobSpec):
    """A spec whose stage comes from the job's progress, not from its job file. The job can go on without the stage."""

    def without_stage(self) -> JobSpec:
        """What the job is if the controller does not take the stage."""
        return JobSpec.model_construct(**dict(self) | {"stage": None, "rungs_left": None})


def in_stage(spec: JobSpec, stage: str, until: float | None, rungs_left: int | None = None) -> StagedSpec:
    """A spec in a stage that ends when ``until`` iterations are done, and that so many rungs follow, if known."""
    length = {"iterations": until} if until is not None else {}
    return StagedSpec.model_construct(**dict(spec) | {"stage": stage, "rungs_left": rungs_left} | length)

"""Stages: which jobs end together. A stage is there because an operator put it, or because a job's spec names it."""

from __future__ import annotations

from typing import NamedTuple

from controller.journal.bodies import StageBody
from controller.journal.store import Store
from controller.refusals import Conflict, Invalid, NotFound
from controller.registry.job.record import JobRecord
from controller.registry.jobs import Jobs
from controller.wire import StageSpec

MAX_STAGES = 10_000


class StageChange(NamedTuple):
    """Whether a stage is new, and the jobs that were moved into it or out of it."""

    is_created: bool
    moved: list[JobRecord]


class Stages:
    """The stages over ``jobs``. ``names`` are those that were put; a job's spec may name others."""

    def __init__(self, names: set[str], jobs: Jobs, store: Store) -> None:
        self.names = names
        self._jobs = jobs
        self._store = store

    def put(self, stage_id: str, spec: StageSpec) -> StageChange | None:
        """Make the stage consist of these jobs; returns None where it does already.

        Raises Invalid for unknown jobs, and Conflict for a job that is in another stage.
        """
        wanted = set(spec.jobs)
        members = {job.id for job in self._jobs if job.stage == stage_id}
        is_created = stage_id not in self.names and not members
        if stage_id in self.names and wanted == members:
            return None
        self._check(stage_id, spec)
        self.names.add(stage_id)
        self._store.put("stage", stage_id, StageBody().model_dump_json())
        moved = [self._jobs.find(job_id) for job_id in sorted(members ^ wanted)]
        for job in moved:
            job.set_stage(stage_id if job.id in wanted else None)
        return StageChange(is_created, moved)

    def delete(self, stage_id: str) -> list[JobRecord]:
        """End a stage; returns the jobs that were in it, which go on without one. Raises NotFound."""
        members = [self._jobs.find(job_id) for job_id in self.jobs_of(stage_id)]
        self.names.discard(stage_id)
        self._store.remove("stage", stage_id)
        for job in members:
            job.set_stage(None)
        return members

    def jobs_of(self, stage_id: str) -> tuple[str, ...]:
        """Returns the jobs of a stage; raises NotFound.

        A stage that only jobs' specs name is there as long as one of these jobs is.
        """
        members = tuple(sorted(job.id for job in self._jobs if job.stage == stage_id))
        if stage_id not in self.names and not members:
            raise NotFound(f"there is no stage {stage_id}")
        return members

    def fillers(self, stage_id: str | None, but: str) -> frozenset[str | None]:
        """Returns who has put running jobs into a stage, the job ``but`` left out.

        These are the hosts whose tokens registered the jobs, and None for operators. A stage that was put is an
        operator's too, and so is the membership of a job in such a stage.
        """
        if stage_id is None:
            return frozenset()
        registrars = {job.registrar for job in self._jobs.live() if job.stage == stage_id and job.id != but}
        own = self._jobs.get(but)
        is_put = stage_id in self.names or (own is not None and own.ended_at is None and own.stage in self.names)
        return frozenset(registrars | ({None} if is_put else set()))

    def _check(self, stage_id: str, spec: StageSpec) -> None:
        if errors := [
            (f"jobs.{i}", f"unknown job {job!r}; register it first, or name the stage in its own spec")
            for i, job in enumerate(spec.jobs)
            if job not in self._jobs
        ]:
            raise Invalid(errors)
        for i, job_id in enumerate(spec.jobs):
            job = self._jobs.find(job_id)
            if job.stage is not None and job.stage != stage_id and job.ended_at is None:
                problem = f"job {job_id} is in stage {job.stage} already; end that stage first"
                raise Conflict(problem, [(f"jobs.{i}", problem)])
        if stage_id not in self.names and len(self.names) >= MAX_STAGES:
            raise Conflict(f"there are {MAX_STAGES} stages already, which is the most; end some")

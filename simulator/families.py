"""What jobs that ended earlier in a simulation say of those that run: the controller's own families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.families.families import Families
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey, Owner, family_in_force
from controller.families.run import EarlierRun
from controller.families.summary import summary
from controller.model import Job, Metric, Progress
from simulator.jobs import SimJob

_ACCURACY = Metric()


def finished_run(
    key: tuple[str, float], curve: Sequence[float], metric: Metric = _ACCURACY, *, ended_at: float
) -> EarlierRun:
    """Returns what the controller keeps of a job that reported the metric of each iteration to its end.

    ``key``: the job, and when this run of it was registered; both times are in seconds.
    """
    reports = [Progress(float(k), ended_at, value) for k, value in enumerate(curve, start=1)]
    return summary(key, reports, metric, ended_at=ended_at, declared=float(len(curve)))


class EarlierJobs:
    """The families of one simulation, which begins with those of ``earlier`` jobs. All jobs have the same owner.

    Earlier jobs ended a second after each other, and the last of them a second before the simulation begins.
    """

    def __init__(self, earlier: Sequence[SimJob] = ()) -> None:
        self._families = Families()
        self._shown: dict[str, tuple[Job, FamilyHistory, Job]] = {}
        for before, job in zip(range(len(earlier), 0, -1), earlier, strict=True):
            self.keep(job, arrival=-float(before), now=-float(before))

    def keep(self, job: SimJob, arrival: float, now: float) -> None:
        """Keep the run of a job that arrived at ``arrival`` and has ended ``now``, in simulated seconds."""
        self._shown.pop(job.id, None)
        if (key := _key(job)) is not None:
            self._families.add(key, finished_run((job.id, arrival), job.curve, job.metric, ended_at=now))

    def shown(self, jobs: Sequence[Job], simulated: Sequence[SimJob]) -> tuple[Job, ...]:
        """Returns jobs with what their families say now: the same object as long as nothing has changed."""
        return tuple([self._with_family(job, each) for job, each in zip(jobs, simulated, strict=True)])

    def _with_family(self, job: Job, simulated: SimJob) -> Job:
        key = _key(simulated)
        if key is None:
            return job
        history = self._families.history(key, job.metric)
        before = self._shown.get(job.id)
        if before is None or before[0] is not job or before[1] != history:
            before = self._shown[job.id] = (job, history, replace(job, family=history))
        return before[2]


def _key(job: SimJob) -> FamilyKey | None:
    name = family_in_force(job.family, None)
    return None if name is None else FamilyKey(Owner(), name)

"""What jobs declare beside their experiment. It changes what is known of a job, and never what the job does. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controller.wire import Message, MetricValue
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.family_plan import FamilyName


class Declaration(Message):
    """What one job declares. None, and an empty family, leave what the experiment says."""

    target: MetricValue | None = None
    family: FamilyName = ""


def declared(experiment: Experiment, declares: Mapping[str, Declaration]) -> Experiment:
    """Returns the experiment with jobs that declare what ``declares`` says, by their ids. Other ids do not matter.

    Jobs that ended before declare families alone: no target of theirs has a meaning any more.
    """
    return experiment.model_copy(
        update={
            "jobs": tuple(_with(job, declares[job.id]) if job.id in declares else job for job in experiment.jobs),
            "earlier": tuple(
                job.model_copy(update={"family": declares[job.id].family or job.family}) if job.id in declares else job
                for job in experiment.earlier
            ),
        }
    )


def _with(job: JobPlan, says: Declaration) -> JobPlan:
    return job.model_copy(
        update={
            "target": job.target if says.target is None else says.target,
            "family": says.family or job.family,
        }
    )

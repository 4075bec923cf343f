"""TRAINYARD_JOB: the user's own name of a job, whatever starts it."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name
from host_reporter.training.launch import JOB_VARIABLE, job_name


class Trainyard(Launcher):
    """A process with TRAINYARD_JOB (docs/frameworks.md). The name belongs to the user of the process."""

    name = "trainyard"
    precedence = Precedence.USER
    reads = frozenset({JOB_VARIABLE})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job that the user has named."""
        text = facts.environment.get(JOB_VARIABLE, "")
        name = job_name(text)
        return Sighting(self.name, name, family=family_of_name(text)) if name is not None else None

"""PBS: PBS Professional, OpenPBS and Torque."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name


class Pbs(Launcher):
    """A job of PBS's: PBS_JOBID, PBS_JOBNAME (PBS Professional User's Guide, environment variables of a job)."""

    name = "pbs"
    precedence = Precedence.BATCH
    reads = frozenset({"PBS_JOBID", "PBS_JOBNAME"})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job. PBS tells no ranks: what the script starts does."""
        job = facts.environment.get("PBS_JOBID")
        family = family_of_name(facts.environment.get("PBS_JOBNAME"))
        return self.by_environment(facts, job, family=family) if job else None

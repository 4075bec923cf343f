"""LSF: IBM Spectrum LSF's bsub."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name
from host_reporter.training.launch import lsf_job


class Lsf(Launcher):
    """A job of LSF's, and each job of an array.

    Variables: LSB_JOBID, LSB_JOBINDEX, LSB_JOBNAME, LSB_MCPU_HOSTS, which lists hosts and slots by turns (IBM Spectrum
    LSF, environment variables set for job execution).
    """

    name = "lsf"
    precedence = Precedence.BATCH
    reads = frozenset({"LSB_JOBID", "LSB_JOBINDEX", "LSB_JOBNAME", "LSB_MCPU_HOSTS"})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job. LSF tells no ranks: what the script starts does."""
        job = lsf_job(facts.environment)
        if not job:
            return None
        hosts = facts.environment.get("LSB_MCPU_HOSTS", "").split()[::2]
        return self.by_environment(
            facts,
            job,
            hosts=tuple(dict.fromkeys(host.partition(".")[0] for host in hosts)),
            family=family_of_name((facts.environment.get("LSB_JOBNAME") or "").partition("[")[0]),
        )

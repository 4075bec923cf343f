"""Open MPI's mpirun, and others that start processes by PMIx."""

from __future__ import annotations

from dataclasses import replace

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.launch import job_name
from host_reporter.training.ranks import OPEN_MPI, PMIX


class OpenMpi(Launcher):
    """A rank of Open MPI's.

    Variables: OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
    (https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html); PMIX_RANK and PMIX_NAMESPACE, the name of the
    run on all its hosts (https://docs.openpmix.org).
    """

    name = "openmpi"
    precedence = Precedence.MPI
    reads = frozenset({"PMIX_NAMESPACE", "PMIX_RANK", *OPEN_MPI})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the run of a rank."""
        environment = facts.environment
        if OPEN_MPI.rank not in environment and not {"PMIX_RANK", "PMIX_NAMESPACE"} <= environment.keys():
            return None
        namespace = environment.get("PMIX_NAMESPACE")
        seen = self.by_environment(facts, None, OPEN_MPI, PMIX)
        return replace(seen, name=job_name(f"mpi-{namespace}")) if namespace else seen

"""PALS, which starts applications on HPE Cray machines: ``mpiexec`` and ``aprun``."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.ranks import PALS


class Pals(Launcher):
    """A rank of PALS's.

    Variables: PALS_APID, PALS_RANKID, PALS_LOCAL_RANKID, PMI_SIZE
    (https://docs.alcf.anl.gov/aurora/running-jobs-aurora/).
    """

    name = "pals"
    precedence = Precedence.MPI
    reads = frozenset({"PALS_APID", *PALS})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the application of a rank."""
        if PALS.rank not in facts.environment:
            return None
        return self.by_environment(facts, facts.environment.get("PALS_APID"), PALS)

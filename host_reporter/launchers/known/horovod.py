"""Horovod's own launcher: ``horovodrun`` with Gloo. With MPI its ranks are those of mpirun."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.ranks import HOROVOD


class Horovod(Launcher):
    """A rank of horovodrun's.

    Variables: HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, and HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT, where the
    ranks of one run meet (https://horovod.readthedocs.io/en/stable/running_include.html).
    """

    name = "horovod"
    precedence = Precedence.FRAMEWORK
    reads = frozenset({"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", *HOROVOD})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the run of a rank."""
        if HOROVOD.rank not in facts.environment:
            return None
        address, port = (facts.environment.get(f"HOROVOD_GLOO_RENDEZVOUS_{part}") for part in ("ADDR", "PORT"))
        if not address or not port:
            return self.by_environment(facts, None, HOROVOD)
        place = facts.host if address.startswith("127.") or address == "localhost" else address
        return self.by_environment(facts, f"{place}-{port}", HOROVOD)

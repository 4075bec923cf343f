"""torchrun (torchelastic), and what else gives torch.distributed its environment."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.family import family_of_name
from host_reporter.training.launch import all_here, may_restart, meeting_place, torchrun_run
from host_reporter.training.ranks import TORCH


class Torchrun(Launcher):
    """A worker of torchrun's, or a process with the environment of torch.distributed's ``env://``.

    Variables: TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS, RANK, LOCAL_RANK, WORLD_SIZE,
    LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (https://docs.pytorch.org/docs/stable/elastic/run.html). A run without an
    id has the name of the address and port where its ranks meet.
    """

    name = "torchrun"
    precedence = Precedence.FRAMEWORK
    reads = frozenset(
        {
            "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "LOCAL_WORLD_SIZE",
            "MASTER_ADDR", "MASTER_PORT", *TORCH,
        }
    )  # fmt: skip

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the run. RANK and WORLD_SIZE are there in each worker."""
        environment = facts.environment
        if "RANK" not in environment or "WORLD_SIZE" not in environment:
            return None
        run = torchrun_run(environment)
        return self.by_environment(
            facts,
            run or meeting_place(environment, facts.host),
            TORCH,
            hosts=(facts.host,) if all_here(environment) else (),
            family=family_of_name(run),
            may_restart=may_restart(environment),
        )

"""DeepSpeed's launcher: ``deepspeed train.py``."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.launch import meeting_place
from host_reporter.training.ranks import TORCH


class DeepSpeed(Launcher):
    """A rank of DeepSpeed's own launcher.

    Variables: RANK, LOCAL_RANK, WORLD_SIZE, CROSS_RANK, CROSS_SIZE, MASTER_ADDR, MASTER_PORT
    (https://www.deepspeed.ai/getting-started/). The run has no id. Its name is that of the place where its ranks meet.
    """

    name = "deepspeed"
    precedence = Precedence.FRAMEWORK
    reads = frozenset({"CROSS_RANK", "CROSS_SIZE", "MASTER_ADDR", "MASTER_PORT", *TORCH})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the run."""
        environment = facts.environment
        if not {"RANK", "WORLD_SIZE", "CROSS_RANK", "CROSS_SIZE"} <= environment.keys():
            return None
        return self.by_environment(facts, meeting_place(environment, facts.host), TORCH)

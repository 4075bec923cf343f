"""The interface of a launcher: it sees a process, and says as what it was started. Pure.

A package adds a launcher by an entry point of the group ``trainyard.launchers``, whose value is a subclass of Launcher.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.training.launch import job_name
from host_reporter.training.ranks import Ranks, Variables, told_by

Trust = Literal["cgroup", "environment"]
"""Who says it: the kernel's cgroup, which no user can choose, or the process itself, which speaks for its user."""


class Precedence(IntEnum):
    """Who names the job where several launchers see a process: the lowest. A believed cgroup comes before all."""

    RULE = 0
    CLUSTER = 1
    USER = 2
    BATCH = 3
    FRAMEWORK = 4
    MPI = 5


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a launcher says of a process.

    ``name``: the job's id where ``trust`` is cgroup, else the job's name among those of the process's user; None: this
    launcher does not tell it. ``rank``, ``local_rank``, ``world_size``: None where they are not told. ``hosts``: all
    hosts of the job; empty: not told. ``family``: the name by which runs of the same training are known.
    ``description``: what else people call the job. ``may_restart``: the launcher may start the processes again.
    ``user``: whose job it is where that is no Unix user, such as a namespace. ``group``: the believed cgroup, which
    holds all processes of the job that are in it. ``helper``: the job's name for the two-line helper.
    """

    launcher: str
    name: str | None
    trust: Trust = "environment"
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    hosts: tuple[str, ...] = ()
    family: str | None = None
    description: str | None = None
    may_restart: bool = False
    user: str | None = None
    group: str | None = None
    helper: str | None = None


class Launcher(ABC):
    """One launcher. ``reads`` names the variables that it looks at; others are not in the facts."""

    name: str
    """The name by which settings and messages call it."""
    precedence: ClassVar[Precedence]
    reads: frozenset[str]

    @abstractmethod
    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns what this launcher says of a process; None where it has not started it. It never raises."""

    def by_environment(self, facts: ProcessFacts, name: str | None, *variables: Variables, **more: Any) -> Sighting:
        """Returns a sighting by the environment. The first of ``variables`` that tells a rank tells it.

        ``name`` gets the launcher's name in front. ``more`` are other fields of the sighting.
        """
        told = (told_by(one, facts.environment) for one in variables)
        return self.ranked(name, next((ranks for ranks in told if ranks is not None), None), **more)

    def ranked(self, name: str | None, ranks: Ranks | None, **more: Any) -> Sighting:
        """Returns a sighting by the environment with these ranks; see ``by_environment``."""
        known = ranks._asdict() if ranks is not None else {}
        return Sighting(self.name, job_name(f"{self.name}-{name}") if name else None, **known, **more)

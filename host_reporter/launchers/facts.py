"""What is known of one process before anybody says what job it is of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Pod(NamedTuple):
    """A pod of Kubernetes, by the kubelet's own folder of its logs."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One process.

    ``started``: in clock ticks since the machine's start. ``users``: its real, effective and saved user. ``cgroups``:
    its path in each hierarchy, from the root. ``environment``: those of its variables that a launcher reads, as they
    were when its program was started. ``command``, ``parent_command``: its arguments and those of its parent.
    ``pod``: the pod of its cgroup. ``host``: the name of this host.
    """

    pid: int
    started: int
    users: frozenset[int]
    cgroups: tuple[str, ...]
    environment: Mapping[str, str]
    command: tuple[str, ...] = ()
    parent_command: tuple[str, ...] = ()
    pod: Pod | None = None
    host: str = ""

    @property
    def user(self) -> int | None:
        """The user of the process; None where it has the rights of several, as a setuid program has."""
        return next(iter(self.users)) if len(self.users) == 1 else None

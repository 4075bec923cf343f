"""A workload with, where its jobs lead to others, the one who submits those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from simulator.jobs import SimJob, Workload


class Follower(Protocol):
    """Who submits more jobs when one ends. Good for one simulation."""

    @property
    def submitted(self) -> Sequence[SimJob]:
        """All that it has submitted so far."""

    def __call__(self, job_id: str, end: float) -> Sequence[SimJob]:
        """The jobs that arrive because ``job_id`` ended at ``end`` (seconds)."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``follower`` makes a fresh follower for one simulation; None: no job leads to another."""

    workload: Workload
    follower: Callable[[], Follower] | None = None

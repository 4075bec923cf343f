"""What the lab of ``scripts/evaluate real`` is asked and what it answers, as values that are JSON on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.real.job import RankUse, RealJob
from topologies.box.datapath import Datapath
from topologies.lab.results import ArmResult, PolicyChoice

MOST_WAITING_SHARE = 0.1
LEAST_IDLE_SHARE = 0.15
"""With more waiting for a processor the processors are measured, not the network; where a kernel does not tell who
waits, with less idle time."""


@dataclass(frozen=True, slots=True)
class RealRequest:
    """Jobs on hosts h1..hN of one switch, under each policy in turn; after ``limit_seconds`` a job is censored."""

    seed: int
    hosts: int
    link_bps: float
    jobs: tuple[RealJob, ...]
    policies: tuple[PolicyChoice, ...]
    period_seconds: float
    limit_seconds: float
    queues: int = 8


@dataclass(frozen=True, slots=True)
class Found:
    """What the controller knew of a job that declares no port and no byte.

    ``connections``: at most; ``iteration_bytes``: that one iteration sends, over all pairs of hosts, measured last;
    ``classes``: those that it was seen in.
    """

    connections: int
    iteration_bytes: float
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RealArm:
    """One policy; ``found``: by job."""

    arm: ArmResult
    ranks: tuple[RankUse, ...]
    found: Mapping[str, Found]


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the processors were in an arm.

    ``computing_share`` and ``waiting_share``: of the ranks' time, in the mean. ``busy_ranks_a_core``: how many ranks
    computed at a time, for each processor, in the mean.
    """

    ranks_a_core: float
    busy_ranks_a_core: float
    computing_share: float
    waiting_share: float | None
    idle_share: float

    @property
    def is_bottleneck(self) -> bool:
        """Whether the ranks waited for processors, so that the network is not what was measured."""
        if self.waiting_share is None:
            waits = self.idle_share < LEAST_IDLE_SHARE
        else:
            waits = self.waiting_share > MOST_WAITING_SHARE
        return waits or self.busy_ranks_a_core >= 1


def load(arm: RealArm, cores: int) -> Load:
    """How busy an arm's processors were."""
    spent = sum(rank.seconds for rank in arm.ranks) or 1.0
    known = [rank.waited_seconds for rank in arm.ranks if rank.waited_seconds is not None]
    cpu = sum(rank.cpu_seconds for rank in arm.ranks)
    return Load(
        ranks_a_core=len(arm.ranks) / cores,
        busy_ranks_a_core=cpu / max(arm.arm.seconds, 1e-9) / cores,
        computing_share=cpu / spent,
        waiting_share=sum(known) / spent if len(known) == len(arm.ranks) and known else None,
        idle_share=arm.arm.cpu_idle_share,
    )


@dataclass(frozen=True, slots=True)
class RealResult:
    """All that a request asked for. ``cores``: processors that the lab saw."""

    datapath: Datapath
    seed: int
    torch: str
    cores: int
    arms: tuple[RealArm, ...]

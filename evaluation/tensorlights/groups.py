"""The arms of the claim ``tensorlights``: every placement under fair sharing and TensorLights, and what explains them.

Every arm is the same but for what orders the hosts' NICs: the switch has one class for all jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from evaluation.lab_group import LabGroup
from evaluation.tensorlights.workload import (
    ITERATIONS,
    PLACEMENTS,
    SEGMENTS_OF_A_MODEL,
    Placement,
    Variant,
    experiment,
    placement_key,
)
from topologies.experiments.experiment import Experiment
from topologies.lab.nic_queues import HASHED_QUEUES
from topologies.lab.results import LabRequest, LabResult, PolicyChoice

TOGETHER = PLACEMENTS[0]
SEEDS = range(81, 86)
SEEDS_OF_SPREAD = range(81, 84)
"""The placement that the claim is about has more seeds than those where less is to be seen."""

SEEDS_OF_WHY = range(81, 83)
QUICK_SEED = 1
QUICK_ITERATIONS = 3

FAIR = PolicyChoice("fair", nic="none")
HASHED = PolicyChoice("fair", nic="hashed")
ONE = PolicyChoice("fair", label="tls-one", nic="tls-one")
RR = PolicyChoice("fair", label="tls-rr", nic="tls-rr")
EACH = PolicyChoice("fair", label="tls-each", nic="tls-each")
"""[ours] TLs-One with a band for each job, where the authors' jobs share seven."""

PUBLISHED = (FAIR, ONE, RR)
ARMS = (*PUBLISHED, EACH)
ORDER = (ONE.name, RR.name)

AS_CLAIMED = Variant()
BANDED = Variant("each")
"""Its jobs are those of the claim; the arm beside fair sharing is ``EACH``."""

SENT = Variant("sent", pulls="sent")
BURSTS = Variant("bursts", segments=SEGMENTS_OF_A_MODEL)
SEVEN = Variant("seven", shares=3)
PROCESSORS = Variant("processors", processors=6)
QUEUES = Variant("queues")
HALF = Variant("half", batch=0.5)
SHALLOW = Variant("shallow", port_packets=None, rto_min_seconds=None)
WHY = {
    BANDED.name: "each job has a band of its own [ours]",
    SENT.name: "the server sends the model, and nobody asks for it",
    BURSTS.name: f"packets of {BURSTS.segments} frames: a model leaves in one piece",
    SEVEN.name: "7 jobs of three times the bytes, so that no two share a band",
    PROCESSORS.name: f"workers share the {PROCESSORS.processors} processors of their host",
    QUEUES.name: f"under fair sharing the NICs have {HASHED_QUEUES} queues, to which connections are hashed",
    HALF.name: "workers compute half as long",
    SHALLOW.name: "the switch's queues hold a few hundred KB, and TCP's least timeout is Linux's",
}
"""What each variant changes or adds. All servers stand on one host there."""


@dataclass(frozen=True, slots=True)
class Group(LabGroup):
    """One placement and seed under all arms in turn."""

    placement: Placement
    seed: int
    iterations: int = ITERATIONS
    policies: tuple[PolicyChoice, ...] = PUBLISHED
    variant: Variant = AS_CLAIMED

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        if self.variant.name:
            return f"why-{self.variant.name}-{self.seed}"
        return f"servers-{placement_key(self.placement)}-{self.seed}"

    def experiment(self) -> Experiment:
        """Return the experiment with the group's jobs."""
        return experiment(self.placement, self.seed, self.iterations, self.variant)

    def request(self) -> LabRequest:
        """Return the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        return LabRequest((self.experiment(),), self.policies[turn:] + self.policies[:turn])

    def small(self, result: LabResult) -> LabResult:
        """Returns a result without the jobs' histories. The claim adds up all else."""
        arms = [
            replace(arm, jobs={job: replace(each, history=()) for job, each in arm.jobs.items()}) for arm in result.arms
        ]
        return replace(result, arms=tuple(arms))


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """Returns all arms of the claim, the longest first; quick: one seed of short jobs, all servers on one host.

    A band for each job is measured where all servers stand on one host, because elsewhere fewer share one. ``others``
    of False: without TLs-One, and without what explains the claim and adds to it.
    """
    policies = PUBLISHED if others else (FAIR, RR)
    if quick:
        return [Group(TOGETHER, QUICK_SEED, QUICK_ITERATIONS, policies)]
    together = [Group(TOGETHER, seed, policies=policies) for seed in SEEDS]
    spread = [
        Group(placement, seed, policies=policies)
        for placement in PLACEMENTS
        if placement != TOGETHER
        for seed in SEEDS_OF_SPREAD
    ]
    return [*together, *([*_banded(), *_explaining()] if others else []), *spread]


def _banded() -> list[Group]:
    return [Group(TOGETHER, seed, policies=(FAIR, EACH), variant=BANDED) for seed in SEEDS]


def _explaining() -> list[Group]:
    return [
        Group((sum(TOGETHER) // variant.shares,), seed, policies=(fair, ONE), variant=variant)
        for variant, fair in (
            *((variant, FAIR) for variant in (SENT, BURSTS, SEVEN, PROCESSORS, HALF, SHALLOW)),
            (QUEUES, HASHED),
        )
        for seed in SEEDS_OF_WHY
    ]

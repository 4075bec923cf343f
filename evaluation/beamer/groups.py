"""The arms of the claim ``beamer``: kinds of studies, each on its seeds under every policy. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evaluation.beamer.kinds import CLAIM_SEEDS, HALVING_27, HALVING_81, HYPERBAND_27, NINE, Bracket, Kind
from evaluation.beamer.workload import experiment
from evaluation.lab_group import LabGroup
from topologies.experiments.experiment import Experiment
from topologies.lab.results import LabRequest, LabResult, PolicyChoice

FAIR, BEAMER = PolicyChoice("fair"), PolicyChoice("beamer")
SINCRONIA, FIFO_LM = PolicyChoice("sincronia"), PolicyChoice("fifo-lm")
POLICIES = (FAIR, BEAMER, SINCRONIA, FIFO_LM)
BASELINES = (FAIR.name, SINCRONIA.name, FIFO_LM.name)
SEEDS = {HALVING_81: CLAIM_SEEDS, HYPERBAND_27: CLAIM_SEEDS, HALVING_27: CLAIM_SEEDS, NINE: range(71, 78)}
"""The seeds of each kind, the longest experiments first."""

QUICK_SEED = 1
QUICK = Kind(NINE.name, 3, (Bracket(9, (4, 12, 36)),), NINE.gap_seconds)


@dataclass(frozen=True, slots=True)
class Group(LabGroup):
    """The studies of one kind and seed under several policies in turn."""

    kind: Kind
    seed: int
    policies: tuple[PolicyChoice, ...]

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"{self.kind.name}-{self.seed}"

    def experiment(self) -> Experiment:
        """Its studies, and their jobs."""
        return experiment(self.kind, self.seed)

    def request(self) -> LabRequest:
        """Return the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        turn = self.seed % len(self.policies)
        return LabRequest((self.experiment(),), self.policies[turn:] + self.policies[:turn])

    def small(self, result: LabResult) -> LabResult:
        """Return a result without the jobs, of which the claim adds up the stages alone."""
        smaller = LabGroup.small(self, result)
        return replace(smaller, arms=tuple(replace(arm, jobs={}) for arm in smaller.arms))


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """All arms of the claim, the longest first; quick: fewer and shorter studies, fair sharing and Beamer.

    ``others`` of False: fair sharing and Beamer alone.
    """
    if quick:
        return [Group(QUICK, QUICK_SEED, (FAIR, BEAMER))]
    policies = POLICIES if others else (FAIR, BEAMER)
    return [Group(kind, seed, policies) for kind, seeds in SEEDS.items() for seed in seeds]

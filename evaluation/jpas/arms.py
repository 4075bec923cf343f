"""The arms of the claim ``jpas``: which jobs are run, and what JPAS knows of them. Pure.

Fixed before the first of them ran: workloads, seeds, arms, and what is made of the results
(``evaluation.jpas.figures``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evaluation.jpas.everything import PLUGIN, Everything, milestones
from evaluation.jpas.stream import FRACTION, Knows, Wave, declarations, draw_wave
from evaluation.lab_group import LabGroup
from simulator.reports.targets import target_value
from topologies import checkout
from topologies.experiments.declaration import Declaration
from topologies.experiments.experiment import Experiment
from topologies.experiments.workload import HEAVY, LIGHT, MIDDLE, Load, generate
from topologies.lab.results import LabRequest, PolicyChoice

WorkloadName = Literal["families", "old"]
"""``families``: the jobs of ``evaluation.jpas.stream``. ``old``: those of the claim as it was before families."""
FAIR = "fair"
BASIC: tuple[Knows, ...] = ("none", "target")
AT_HEAVY: tuple[Knows, ...] = ("none", "everything", "family", "target", "half", "both", "wrong-family")
FAMILY_SEEDS = {HEAVY.name: range(80, 88), MIDDLE.name: range(80, 85), LIGHT.name: range(80, 85)}
"""Nothing was run on these seeds before the claim. Eight in a row measure each wave of a stream twice."""
OLD_SEEDS = range(66, 74)
"""The seeds of the old claim, 66 to 70, and three more. Fair sharing and ``none`` on them are the base line."""
PERIOD_SECONDS = 1.0
"""The controller's T."""
ALONE_ITERATIONS = 5


@dataclass(frozen=True)
class Group(LabGroup):
    """Arms that share a network: the jobs of one load and seed under fair sharing, and an arm for each of ``knows``.

    ``alone_iterations`` of 0: how long the jobs take alone is not measured, so there is no headroom to share.
    """

    workload: WorkloadName
    load: Load
    seed: int
    knows: tuple[Knows, ...]
    alone_iterations: int = ALONE_ITERATIONS

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"{self.workload}-{self.load.name}-{self.seed}"

    @cached_property
    def wave(self) -> Wave | None:
        """The wave of jobs that is measured; None for the old workload."""
        return draw_wave(self.load, self.seed, period_seconds=PERIOD_SECONDS) if self.workload == "families" else None

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment with the group's jobs, none of which declares anything."""
        if self.wave is not None:
            return self.wave.experiment
        return generate(self.load, self.seed, period_seconds=PERIOD_SECONDS)

    def request(self) -> LabRequest:
        """Returns the request. The order of the arms rotates with the seed, so that no policy always goes first."""
        choices = (PolicyChoice(FAIR), *map(self._choice, self.knows))
        turn = self.seed % len(choices)
        return LabRequest((self.experiment,), choices[turn:] + choices[:turn], alone_iterations=self.alone_iterations)

    def _choice(self, knows: Knows) -> PolicyChoice:
        if knows == "everything":
            known = milestones({job.id: job.metrics for job in self.experiment.jobs})
            return PolicyChoice(
                Everything.name, {"milestones": known}, knows, plugins=str(PLUGIN.relative_to(checkout.ROOT))
            )
        return PolicyChoice("jpas", label=knows, declares=self._declares(knows))

    def _declares(self, knows: Knows) -> Mapping[str, Declaration]:
        if self.wave is not None:
            return declarations(self.wave, knows)
        if knows == "target":
            return {job.id: Declaration(target=target_value(job.metrics, FRACTION)) for job in self.experiment.jobs}
        return {}


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """Returns all groups of the claim, in the order in which they are measured.

    ``quick``: one seed of the light load, fair sharing and ``target`` only. ``others`` of False: fair sharing, ``none``
    and ``target`` only.
    """
    if quick:
        return [Group("families", LIGHT, 1, ("target",), alone_iterations=0)]
    # Where the network is scarcest the claim is hardest to keep: whether it does is known first.
    heavy = [Group("families", HEAVY, seed, AT_HEAVY if others else BASIC) for seed in FAMILY_SEEDS[HEAVY.name]]
    rest = [Group("families", load, seed, BASIC) for load in (MIDDLE, LIGHT) for seed in FAMILY_SEEDS[load.name]]
    return [*heavy, *(Group("old", HEAVY, seed, BASIC) for seed in OLD_SEEDS), *rest]

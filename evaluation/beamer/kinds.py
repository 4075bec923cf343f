"""Kinds of experiments with studies: which brackets a study has, and how many studies run at once.

They are as tuners search. Successive halving keeps one trial in ``eta`` = 3 of each rung (Hyperband's default, and that
of Ray Tune's HyperBandScheduler, which has 81 trials in its widest bracket). Hyperband runs brackets of it, from many
trials that are cut early to few that all train to the end; Ray Tune and Dask-ML run them side by side. A rung has
``eta`` times the iterations of the one before.

L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar: Hyperband, JMLR 18(185), 2018.

Fixed before any of them ran: kinds, generator (``evaluation.beamer.workload``) and seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from simulator.workloads.halving import brackets, geometric

ETA = 3
SHORTEST_RUNG = 2
"""A trial leaves the first rung of a study after this many iterations."""
MEAN_GAP_SECONDS = 10.0
CLAIM_SEEDS = range(101, 109)
"""The claim's seeds. Nothing ran on them while the policy was designed."""
FIRST_SEED = 2001
"""The policy is designed and its parts are compared on seeds from this one on."""


class Bracket(NamedTuple):
    """Successive halving: ``trials`` begin, and leave rung i after ``rungs[i]`` iterations."""

    trials: int
    rungs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """So many studies at once, whose brackets run side by side; ``gap_seconds`` is the mean gap of their arrivals."""

    name: str
    studies: int
    brackets: tuple[Bracket, ...]
    gap_seconds: float = MEAN_GAP_SECONDS

    @property
    def salt(self) -> str:
        """What is drawn depends on the seed and on this text. The first kind has none, as before there were others."""
        return "" if self.name == NINE.name else f"{self.name} "


def halving(trials: int) -> tuple[Bracket, ...]:
    """Returns the one bracket of successive halving that leaves one of the trials for the last rung."""
    return hyperband(trials)[:1]


def hyperband(trials: int) -> tuple[Bracket, ...]:
    """Returns the brackets of Hyperband whose widest one has so many trials, a power of ``ETA``."""
    rungs = geometric(SHORTEST_RUNG, SHORTEST_RUNG * trials, ETA)
    return tuple(Bracket(count, rungs[first:]) for count, first in brackets(len(rungs), ETA))


NINE = Kind("studies", 4, (Bracket(9, (6, 18, 54)),), 4.0)
"""The claim as it was first measured: nine trials a study."""
HALVING_27 = Kind("halving-27", 4, halving(27))
HALVING_81 = Kind("halving-81", 2, halving(81))
HYPERBAND_27 = Kind("hyperband-27", 2, hyperband(27))
HYPERBAND_81 = Kind("hyperband-81", 1, hyperband(81))
KINDS = {kind.name: kind for kind in (NINE, HALVING_27, HALVING_81, HYPERBAND_27, HYPERBAND_81)}

"""What runs like the recorded ones tell of a target: the best chance of reaching it, per iteration that is spent on it.

A run's target is at no moment seen to be passed: that is known when the run is over. All that can be asked of a job is
the chance that the target comes within its next so many iterations, which is small before its time and after. Boosted
trees on the shape of the history (``controller.curves.shapes``), and on what the fit makes of it, answer it for a few
horizons, shares of the run's length. The best of them, chance over iterations, is Gittins' index of a job whose success
is worth the same whenever it comes (J. Gittins, Journal of the Royal Statistical Society B 41, 1979,
doi:10.1111/j.2517-6161.1979.tb01068.x).

The trees were learned by ``evaluation.curves.learn_prospects``; they stand in ``prospects.json``. Those of declared
targets, in ``target_prospects.json``, were learned by ``evaluation.curves.learn_target_prospects``, and those of jobs
with earlier runs, in ``family_prospects.json``, by ``evaluation.curves.learn_family_prospects``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from controller.curves.histories import Histories
from controller.curves.trees import Forest, Trees

Array = NDArray[np.float64]

HORIZONS = (0.1, 0.25, 0.5)
"""The trees predict the chance for these horizons, as shares of the run's length."""


@dataclass(frozen=True, slots=True, eq=False)
class Prospects:
    """Of one target: for each of ``HORIZONS`` the log-odds that it comes within."""

    within: Forest

    def best(self, histories: Histories, shape: Array, outlook: Array) -> Array:
        """The best chance per iteration (J,) of histories of known length, their ``shape`` (J, 21), ``outlook`` (J, N).

        See ``controller.curves.shapes.shapes`` and ``outlook``, which gives four numbers; where more is known there
        are more (``controller.curves.fit.known_numbers``).
        """
        numbers = np.concatenate((shape, outlook), axis=1)
        end = np.maximum(histories.end, histories.last)
        left = np.maximum(end - histories.last, 1.0)
        rates = [
            expit(odds) / np.minimum(np.maximum(horizon * end, 1.0), left)
            for horizon, odds in zip(HORIZONS, self.within(numbers), strict=True)
        ]
        best: Array = np.maximum.reduce(rates)
        return best


def outlook(histories: Histories, crossing: Array, behind: Array) -> Array:
    """What a fit says of a target (J, 4): how likely it lies behind, and how far ahead it is, in lengths of the run.

    ``crossing`` (J, 3) is the iteration there by the fit, low, median and high; ``behind`` (J,) a probability.
    """
    end = np.maximum(histories.end, histories.last)[:, None]
    return np.concatenate((behind[:, None], (crossing - histories.last[:, None]) / end), axis=1)


@cache
def learned(fraction: float) -> Prospects:
    """Of the target at this share of convergence. Raises KeyError for one that was not learned."""
    return _read("prospects.json")[f"{fraction:g}"]


@cache
def learned_with(*, target: bool, family: bool) -> Prospects:
    """Of a job of which more is known than its history: the chance that the run closes 90 % of its gap.

    ``target``: it declares a target, which need not be the metric at 90 %. ``family``: earlier runs of its family are
    known. At least one of the two is true. Each case has its own trees; other jobs have those of ``learned``.
    """
    if not family:
        return _read("target_prospects.json")["declared"]
    return _read("family_prospects.json")["both" if target else "family"]


@cache
def _read(name: str) -> Mapping[str, Prospects]:
    text = resources.files("controller.curves").joinpath(name).read_text(encoding="utf-8")
    return {
        target: Prospects(
            Forest.of(Trees.read(horizon_trees["start"], horizon_trees["trees"]) for horizon_trees in of_target)
        )
        for target, of_target in json.loads(text).items()
    }

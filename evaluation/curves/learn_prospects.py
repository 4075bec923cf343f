"""Learns ``controller/curves/prospects.json`` from recorded runs: those marked ``study``, and those of drawn recipes.

Run this by hand from the top of the tree; it takes half a minute on one core:

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.learn_prospects

Each curve is replayed over runs of several lengths. Every iteration from the third on gives one training sample. All
runs have the same weight. Samples long after the crossing have less, because they are many and easy to predict.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from controller.curves import fit as curve_fit
from controller.curves.histories import MIN_POINTS, read
from controller.curves.prospects import HORIZONS, Prospects, outlook
from controller.curves.shapes import shapes
from controller.curves.trees import Forest, Trees
from controller.model import Metric, Progress
from evaluation.curves import drawn_curves
from evaluation.curves.binning import BINS, Binned, binned
from simulator.reports.targets import target_iteration
from simulator.workloads import curves
from topologies.signals import exit_status

Array = NDArray[np.float64]
Run = tuple[float, ...]

FILE = Path(curve_fit.__file__).with_name("prospects.json")
FRACTIONS = (curve_fit.T90.fraction, curve_fit.T95.fraction)
LENGTHS = (50, 62, 75, 87, 100)
"""The replayed runs have these numbers of iterations, as far as a curve has as many rows."""
WATCHED, AFTERWARDS = 3, 0.3
"""Samples later than WATCHED times the crossing of 90 % have the weight AFTERWARDS."""
DIGITS = 4
TREES, RATE, LEAST_LEAF, RIDGE = 150, 0.06, 100, 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of replayed runs: their numbers (M, N), their weights, and how much of the run is left to a target (M,).

    ``left`` is a share of the run's length; it is 0 or less where the target has been reached.
    """

    numbers: Array
    weight: Array
    left: Array


def replayed(rows: Iterable[Run]) -> Iterator[Run]:
    """Yields the accuracy by iteration of runs of several lengths, replayed from recorded curves."""
    for curve in rows:
        for length in sorted({min(length, len(curve)) for length in LENGTHS}):
            yield curves.replay(curve, length)


def known_curves() -> list[Run]:
    """Returns every recorded curve that may be learned from."""
    return [curves.load(name) for name in curves.names("study")] + [run.accuracy for run in drawn_curves.load()]


def moments(runs: Iterable[Run], fraction: float) -> Moments:
    """Returns all moments of the runs that reach 90 %. A run that never reaches ``fraction`` has it after its end."""
    numbers, weights, lefts = [], [], []
    for run in runs:
        first, target = (target_iteration(run, share) for share in (curve_fit.T90.fraction, fraction))
        if first is None:
            continue
        seen = np.arange(MIN_POINTS, len(run) + 1)
        progress = [Progress(float(i), float(i), metric) for i, metric in enumerate(run, start=1)]
        histories = [curve_fit.History(progress[:k], Metric(), float(len(run))) for k in seen.tolist()]
        known = read(histories)[1]
        numbers.append(np.concatenate((shapes(known), fitted(histories, fraction)), axis=1))
        weights.append(np.where(seen < WATCHED * first, 1.0, AFTERWARDS) / len(seen))
        lefts.append(((np.inf if target is None else target) - seen) / len(run))
    return Moments(np.concatenate(numbers), np.concatenate(weights), np.concatenate(lefts))


def fitted(histories: Sequence[curve_fit.History], fraction: float) -> Array:
    """Returns the outlook on a target by the fit alone, for histories that all have one (see ``prospects.outlook``)."""
    (target,) = (target for target in (curve_fit.T90, curve_fit.T95) if target.fraction == fraction)
    fits = [
        fit.targets[0] for fit in curve_fit.fit_many(histories, [replace(target, learned=False)]) if fit is not None
    ]
    crossing = np.array([[at.iteration.low, at.iteration.median, at.iteration.high] for at in fits])
    return outlook(read(histories)[1], crossing, np.array([at.crossed for at in fits]))


def learn(known: Moments) -> list[dict[str, Any]]:
    """Returns the trees for each horizon, as in the file."""
    weight = known.weight / known.weight.mean()
    bins = binned(known.numbers, weight)
    forests = []
    for horizon in HORIZONS:
        model = HistGradientBoostingClassifier(
            max_depth=2,
            max_bins=BINS,
            max_iter=TREES,
            learning_rate=RATE,
            min_samples_leaf=LEAST_LEAF,
            l2_regularization=RIDGE,
            early_stopping=False,
        )
        model.fit(bins.numbers, (known.left > 0) & (known.left <= horizon), sample_weight=weight)
        forests.append(_written(model, bins))
    return forests


def as_prospects(written: Sequence[dict[str, Any]]) -> Prospects:
    """Returns the prospects that a file with these trees would give."""
    return Prospects(Forest.of(Trees.read(forest["start"], forest["trees"]) for forest in written))


def _written(model: HistGradientBoostingClassifier, bins: Binned) -> dict[str, Any]:
    # The library offers no public access to its trees.
    trees = [_row(tree.nodes, bins) for (tree,) in model._predictors]
    return {"start": _rounded(model._baseline_prediction.item()), "trees": trees}


def _row(nodes: Any, bins: Binned) -> list[float]:
    """Returns a tree as ``Trees.read`` takes it; the ends of an incomplete tree are repeated."""

    def of(place: int) -> tuple[int, float, int, int]:
        node = nodes[place]
        if node["is_leaf"]:
            return 0, 0.0, place, place
        column = int(node["feature_idx"])
        threshold = bins.threshold(column, float(node["num_threshold"]))
        return column, threshold, int(node["left"]), int(node["right"])

    root, left, right = of(0), *(of(child) for child in of(0)[2:])
    ends = [float(nodes[place]["value"]) for side in (left, right) for place in side[2:]]
    return [
        *(node[0] for node in (root, left, right)),
        *(_rounded(value) for value in (root[1], left[1], right[1], *ends)),
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def main() -> int:
    """Learns the trees, and writes the file."""
    runs = list(replayed(known_curves()))
    forests = {f"{fraction:g}": learn(moments(runs, fraction)) for fraction in FRACTIONS}
    FILE.write_text(json.dumps(forests, separators=(",", ":")).replace('{"start"', '\n{"start"') + "\n")
    sys.stdout.write(f"{FILE.name}: {len(runs)} runs\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

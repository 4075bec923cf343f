"""Records the learning curves of simulator/workloads/curves: real training runs, held-out accuracy as it was measured.

Run this by hand from the top of the tree; the result is committed, and it takes about two minutes on one core:

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.record

Every recipe of ``evaluation.curves.recipes`` is trained once, by its own fixed seed, on scikit-learn's bundled data
sets. After every ``every`` mini-batches the accuracy on the held-out third is one row; a synthetic job replays the rows
over its iterations. Nothing is smoothed, repeated or generated from a formula.

A run ends by patience, as trainings do. It stops at the first row, from the 40th on, at which the last 40 % of the rows
have not raised the best running median of five by a percentage point of accuracy, and the accuracy is clearly above
chance. A run that has not stopped by row 400 has not converged.

Only these criteria decide which runs are kept, and never what a policy does with a curve:

1. it stopped by patience within 400 rows;
2. the median of its last tenth is within noise of its best running median of five (noise: two standard errors of
   an accuracy on the held-out set);
3. that median is above chance (the commonest class's share) by at least a tenth and by more than noise;
4. it does not reach 90 % of the converged accuracy within its first three rows.

Each kept curve is then marked ``study`` or ``claim``, half each, by a shuffle with a fixed seed: policies are
designed on the first, claims are measured on the second.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
import warnings
from dataclasses import dataclass
from random import Random

import numpy as np
import sklearn
from sklearn.model_selection import train_test_split

from evaluation.curves.data import DATA_SETS, Array
from evaluation.curves.recipes import RECIPES, Recipe
from simulator.reports import targets
from simulator.workloads import curves
from topologies.signals import exit_status

FOLDER = curves.FOLDER
SHORTEST, LONGEST = 40, 400
PATIENCE_SHARE = 0.4
SMALLEST_GAIN = 0.01
MARGIN_OVER_CHANCE = 0.1
FIRST_ROWS = 3
USE_SEED = 20200520


@dataclass(frozen=True)
class Run:
    """A recorded run: accuracy by row, the size of its held-out set and the share of that set's commonest class."""

    recipe: Recipe
    accuracy: tuple[float, ...]
    stopped: bool
    held_out: int
    chance: float


def medians_of_five(accuracy: tuple[float, ...] | list[float]) -> list[float]:
    """Returns the trailing running median of five rows; the first four rows have fewer before them."""
    return [statistics.median(accuracy[max(0, i - 4) : i + 1]) for i in range(len(accuracy))]


def noise(accuracy: float, held_out: int) -> float:
    """Returns two standard errors of an accuracy that was measured on ``held_out`` samples."""
    return 2 * math.sqrt(max(accuracy * (1 - accuracy), 1 / held_out) / held_out)


def above_chance(accuracy: float, held_out: int, chance: float) -> bool:
    """Returns whether an accuracy meets criterion 3."""
    return accuracy - chance >= MARGIN_OVER_CHANCE and accuracy - chance > noise(accuracy, held_out)


def record(recipe: Recipe) -> Run:
    """Trains by ``recipe`` until patience ends the run, and returns the measured accuracy."""
    data_seed = recipe.seed if recipe.data_seed is None else recipe.data_seed
    features, labels = DATA_SETS[recipe.data](data_seed)
    split = train_test_split(features, labels, test_size=1 / 3, stratify=labels, random_state=data_seed)
    train_x, test_x, train_y, test_y = split
    rng = np.random.default_rng(recipe.seed)
    if recipe.label_noise:
        train_y = _with_label_noise(train_y, recipe.label_noise, rng)
    model = recipe.build(train_x, recipe.seed)
    classes = np.unique(labels)
    held_out = len(test_y)
    chance = float(max(np.mean(test_y == c) for c in classes))
    accuracy: list[float] = []
    order = np.empty(0, dtype=np.intp)
    while len(accuracy) < LONGEST:
        for _ in range(recipe.every):
            if len(order) < recipe.batch:
                order = np.concatenate([order, rng.permutation(len(train_y))])
            rows, order = order[: recipe.batch], order[recipe.batch :]
            model.partial_fit(train_x[rows], train_y[rows], classes=classes)
        # A Bayes classifier gives a probability of 0 to classes that it has not seen yet.
        with np.errstate(divide="ignore"):
            accuracy.append(float(np.mean(model.predict(test_x) == test_y)))
        if out_of_patience(accuracy, held_out, chance):
            return Run(recipe, tuple(accuracy), True, held_out, chance)
    return Run(recipe, tuple(accuracy), False, held_out, chance)


def _with_label_noise(labels: Array, share: float, rng: np.random.Generator) -> Array:
    noisy = labels.copy()
    hit = rng.random(len(labels)) < share
    noisy[hit] = rng.choice(np.unique(labels), size=int(hit.sum()))
    return noisy


def out_of_patience(accuracy: list[float], held_out: int, chance: float) -> bool:
    """Returns whether patience ends a training here: it has gained nothing for ``PATIENCE_SHARE`` of the run."""
    if len(accuracy) < SHORTEST:
        return False
    smooth = medians_of_five(accuracy)
    before = max(smooth[: round(len(smooth) * (1 - PATIENCE_SHARE))])
    return above_chance(before, held_out, chance) and max(smooth) - before < SMALLEST_GAIN


def refusal(run: Run) -> str | None:
    """Returns why the four criteria refuse a run; None if it is kept."""
    if not run.stopped:
        return f"not converged in {LONGEST} rows"
    converged = targets.converged(run.accuracy)
    if converged < max(medians_of_five(run.accuracy)) - noise(converged, run.held_out):
        return "ends below its best"
    if not above_chance(converged, run.held_out, run.chance):
        return f"ends near chance ({converged:.3f}, chance {run.chance:.3f})"
    crossed = targets.target_iteration(run.accuracy, 0.9)
    if crossed is None or crossed <= FIRST_ROWS:
        return f"reaches 90 % by row {crossed}"
    return None


def uses(names: list[str]) -> dict[str, str]:
    """Returns ``study`` or ``claim`` by name, half each, by a fixed seed."""
    shuffled = sorted(names)
    Random(USE_SEED).shuffle(shuffled)
    return {name: ("study" if i < len(shuffled) / 2 else "claim") for i, name in enumerate(shuffled)}


def write_curve(run: Run) -> None:
    """Writes the file of a curve: provenance in ``#`` lines, then ``iteration,accuracy``."""
    recipe = run.recipe
    lines = [
        f"# held-out accuracy of a real training run; scikit-learn {sklearn.__version__}, evaluation/curves/record.py",
        f"# data: {recipe.data}, label noise {recipe.label_noise:g}, held out {run.held_out}, chance {run.chance:.4f}",
        f"# model: {recipe.settings}",
        f"# mini-batch {recipe.batch}, one row every {recipe.every} mini-batches, seed {recipe.seed}",
        "iteration,accuracy",
        *(f"{i},{value:.5f}" for i, value in enumerate(run.accuracy, start=1)),
    ]
    (FOLDER / f"{recipe.name}.csv").write_text("\n".join(lines) + "\n")


def main() -> int:
    """Records every recipe, keeps the runs that meet the criteria, and writes the files and the index."""
    warnings.simplefilter("error")
    kept: list[Run] = []
    for recipe in RECIPES:
        run = record(recipe)
        why = refusal(run)
        sys.stderr.write(f"{recipe.name}: {len(run.accuracy)} rows; {why or 'kept'}\n")
        if why is None:
            kept.append(run)
    for old in FOLDER.glob("*.csv"):
        old.unlink()
    use = uses([run.recipe.name for run in kept])
    with (FOLDER / "index.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["name", "use", "iterations", "converged", "t90_iteration", "t95_iteration",
             "data", "label_noise", "model", "batch", "every", "seed"]
        )  # fmt: skip
        for run in sorted(kept, key=lambda run: run.recipe.name):
            recipe = run.recipe
            write_curve(run)
            writer.writerow([
                recipe.name, use[recipe.name], len(run.accuracy), f"{targets.converged(run.accuracy):.5f}",
                targets.target_iteration(run.accuracy, 0.9), targets.target_iteration(run.accuracy, 0.95),
                recipe.data, f"{recipe.label_noise:g}", recipe.settings, recipe.batch, recipe.every, recipe.seed,
            ])  # fmt: skip
    sys.stderr.write(f"{len(kept)} of {len(RECIPES)} runs kept\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

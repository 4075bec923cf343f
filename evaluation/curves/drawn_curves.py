"""Records runs of randomly drawn training recipes, from which JPAS's prospects are learned.

``drawn_curves.csv`` has the runs. The recipes of ``evaluation.curves.recipes`` were written by hand; there are few, and
those of one data set are similar. The recipes here are drawn from wide ranges by fixed seeds. They are recorded, and
kept or refused, by the same criteria (``evaluation.curves.record``). No claim is ever measured on them. Run this by
hand from the top of the tree; it takes about ten minutes on two cores:

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.drawn_curves
"""

from __future__ import annotations

import csv
import os
import sys
import warnings
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from random import Random
from typing import Any

from evaluation.curves.data import DATA_SETS
from evaluation.curves.recipes import USUAL, Recipe
from evaluation.curves.record import record, refusal

FILE = Path(__file__).with_suffix(".csv")
POPULATIONS = (1, 2)
DRAWS = 240
"""Each population has this many recipes."""
_KINDS = ("mlp",) * 5 + ("linear",) * 3 + ("perceptron", "bernoulli", "gaussian", "nystroem", "fourier")


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A recorded run of a drawn recipe: its population, its name, and its held-out accuracy by row."""

    population: int
    name: str
    accuracy: tuple[float, ...]


def recipes(population: int) -> list[Recipe]:
    """Returns the recipes of one population, which are drawn by its seed."""
    random = Random(f"pop {population}")
    return [_draw(random, 10_000 * population + number) for number in range(DRAWS)]


def load() -> list[DrawnRun]:
    """Returns all runs that were kept."""
    with FILE.open(newline="") as file:
        return [
            DrawnRun(int(row["population"]), row["name"], tuple(float(value) for value in row["accuracy"].split()))
            for row in csv.DictReader(file)
        ]


def _draw(random: Random, seed: int) -> Recipe:
    data = random.choice(sorted(DATA_SETS))
    kind = random.choice(_KINDS)
    small = not data.startswith("digits")
    batch = random.choice([4, 8, 16, 32] if small else [8, 16, 32, 64])
    low, high = (5, 40) if data in ("digits-same", "digits-greater") else (1, 3) if small else (1, 12)
    every = round(_between(random, low, high))
    noise = random.choice([0, 0, 0, 0, 0.2, 0.3, 0.4, 0.5])
    options = USUAL.get(kind, {}) | _options(random, kind, small=small)
    return Recipe(data, kind, batch, every, seed, tuple(options.items()), noise)


def _options(random: Random, kind: str, *, small: bool) -> dict[str, Any]:
    if kind == "mlp":
        depth = random.choice([1, 1, 2, 2, 3])
        options: dict[str, Any] = {"hidden_layer_sizes": (random.choice([8, 16, 32, 64, 128]),) * depth}
        if random.random() < 0.35:
            options |= {"solver": "adam", "learning_rate_init": _digits(_between(random, 0.0003, 0.01))}
        else:
            options["learning_rate_init"] = _digits(_between(random, 0.003, 0.3))
        options["activation"] = random.choice(["relu", "relu", "tanh", "logistic"])
        return options
    if kind == "linear":
        loss = random.choice(["log_loss", "hinge", "modified_huber"])
        return {"loss": loss, "eta0": _digits(_between(random, 0.0002, 0.02))}
    if kind == "bernoulli":
        return {"binarize": 0.0 if small else 0.5}
    if kind in ("nystroem", "fourier"):
        components = random.choice([100, 200, 400])
        gamma = _digits(_between(random, *((0.005, 0.1) if small else (0.05, 0.6))))
        return {"components": components, "gamma": gamma, "eta0": _digits(_between(random, 0.002, 0.03))}
    return {}


def _between(random: Random, low: float, high: float) -> float:
    """Draws a number from ``low`` to ``high``, uniform on a logarithmic scale."""
    return float(low * (high / low) ** random.random())


def _digits(value: float) -> float:
    return float(f"{value:.3g}")


def _recorded(job: tuple[int, Recipe]) -> tuple[int, Recipe, tuple[float, ...] | None]:
    population, recipe = job
    warnings.simplefilter("ignore")
    try:
        run = record(recipe)
    except ValueError:
        # The learning rate is so high that the weights diverge, or a Bayes classifier cannot take negative numbers.
        return population, recipe, None
    return population, recipe, run.accuracy if refusal(run) is None else None


def main() -> int:
    """Records every recipe, keeps the runs that meet the criteria, and writes the file."""
    jobs = [(population, recipe) for population in POPULATIONS for recipe in recipes(population)]
    with Pool(os.cpu_count()) as pool, FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["population", "name", "data", "label_noise", "model", "batch", "every", "seed", "accuracy"])
        for number, (population, recipe, accuracy) in enumerate(pool.imap(_recorded, jobs), start=1):
            sys.stderr.write(f"{number} of {len(jobs)} {recipe.name}: {'refused' if accuracy is None else 'kept'}\n")
            if accuracy is not None:
                writer.writerow([
                    population, recipe.name, recipe.data, f"{recipe.label_noise:g}", recipe.settings, recipe.batch,
                    recipe.every, recipe.seed, " ".join(f"{value:.5f}" for value in accuracy),
                ])  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())

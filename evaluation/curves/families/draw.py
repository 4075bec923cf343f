"""Draws families of recipes by fixed seeds: a base, and its retrainings in the order in which they are run. Pure.

A family's runs share the data, their split and the kind of model, as the retrainings of one training do. The first run
is the base. A ``seed`` run is the base with other initial weights and another order of the samples. A ``near`` run has
each number of the recipe within a factor of 2 of the base's, a ``wide`` run within a factor of 6.

Half of the families are for policies to learn from (``study``), half for judging them (``claim``). They share no data
set of ``evaluation.curves.data``, so a policy that is judged has never seen the task. Some of these data sets are made
from the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Literal

from evaluation.curves.data import DATA_SETS
from evaluation.curves.recipes import USUAL, Recipe

Use = Literal["study", "claim"]
Variation = Literal["base", "seed", "near", "wide"]
USES: tuple[Use, ...] = ("study", "claim")
FAMILIES = 60
"""Draw this many families for each use."""
ORDER: tuple[Variation, ...] = ("base", "near", "seed", "wide", "near", "wide", "seed", "near", "wide", "near")
"""The runs of a family, in order."""
FACTORS: dict[Variation, float] = {"near": 2.0, "wide": 6.0}
BATCHES = (4, 8, 16, 32, 64, 128)
WIDTHS = (8, 16, 32, 64, 128, 256, 512)
EXPENSIVE_SHARE = 0.2
"""Draw this share of the families from networks that are several times as wide or deep as the others."""
_KINDS = ("mlp",) * 6 + ("linear",) * 2 + ("perceptron", "bernoulli", "nystroem", "fourier")
_FIRST_SEED = {"study": 30_000, "claim": 40_000}


def data_sets(use: Use) -> tuple[str, ...]:
    """Returns the names of the data sets that a use has to itself. Large and small ones are halved apart."""
    names: list[str] = []
    for is_large in (True, False):
        shuffled = sorted(name for name in DATA_SETS if name.startswith("digits") == is_large)
        Random(f"data sets of families {is_large}").shuffle(shuffled)
        names += shuffled[USES.index(use) :: 2]
    return tuple(sorted(names))


def bases(use: Use) -> Iterator[Recipe]:
    """Yields base recipes without end. The recorder takes the first ``FAMILIES`` whose run meets its criteria."""
    random = Random(f"families for {use}")
    names = data_sets(use)
    number = 0
    while True:
        yield _base(random, random.choice(names), _FIRST_SEED[use] + number)
        number += 1


def retrainings(base: Recipe) -> list[tuple[Variation, Recipe]]:
    """Returns the runs of a family in order. The base is the first; all have its data and split."""
    random = Random(f"retrainings of {base.name}")
    runs: list[tuple[Variation, Recipe]] = [("base", base)]
    for number, variation in enumerate(ORDER[1:], start=1):
        recipe = replace(base, data_seed=base.seed, seed=100 * base.seed + number)
        if variation in FACTORS:
            recipe = _varied(random, recipe, FACTORS[variation])
        runs.append((variation, recipe))
    return runs


def _base(random: Random, data: str, seed: int) -> Recipe:
    kind = random.choice(_KINDS)
    is_small = not data.startswith("digits")
    is_expensive = random.random() < EXPENSIVE_SHARE and not is_small
    batch = random.choice((4, 8, 16, 32) if is_small else (8, 16, 32, 64))
    low, high = (5, 40) if data in ("digits-same", "digits-greater") else (1, 3) if is_small else (1, 12)
    every = round(_between(random, low, high))
    noise = random.choice((0, 0, 0, 0, 0.2, 0.3, 0.4))
    if is_expensive:
        kind = "mlp"
    options = USUAL.get(kind, {}) | _options(random, kind, is_small=is_small, is_expensive=is_expensive)
    return Recipe(data, kind, batch, every, seed, tuple(options.items()), noise)


def _options(random: Random, kind: str, *, is_small: bool, is_expensive: bool) -> dict[str, Any]:
    if kind == "mlp":
        widths = (256, 512) if is_expensive else (8, 16, 32, 64, 128)
        depth = random.choice((2, 3)) if is_expensive else random.choice((1, 1, 2, 2, 3))
        options: dict[str, Any] = {"hidden_layer_sizes": (random.choice(widths),) * depth}
        if random.random() < 0.35:
            options |= {"solver": "adam", "learning_rate_init": _digits(_between(random, 0.0003, 0.01))}
        else:
            options["learning_rate_init"] = _digits(_between(random, 0.003, 0.3))
        options["activation"] = random.choice(("relu", "relu", "tanh", "logistic"))
        return options
    if kind == "linear":
        loss = random.choice(("log_loss", "hinge", "modified_huber"))
        return {"loss": loss, "eta0": _digits(_between(random, 0.0002, 0.02))}
    if kind == "bernoulli":
        return {"binarize": 0.0 if is_small else 0.5}
    if kind in ("nystroem", "fourier"):
        components = random.choice((100, 200, 400))
        gamma = _digits(_between(random, *((0.005, 0.1) if is_small else (0.05, 0.6))))
        return {"components": components, "gamma": gamma, "eta0": _digits(_between(random, 0.002, 0.03))}
    return {}


def _varied(random: Random, recipe: Recipe, factor: float) -> Recipe:
    """Returns the recipe with each of its numbers multiplied by at most ``factor``, or divided."""
    options = dict(recipe.options)
    for name in ("learning_rate_init", "eta0", "gamma"):
        if name in options:
            options[name] = _digits(options[name] * _between(random, 1 / factor, factor))
    if "hidden_layer_sizes" in options:
        sizes = options["hidden_layer_sizes"]
        options["hidden_layer_sizes"] = (_near(random, WIDTHS, sizes[0], factor),) * len(sizes)
    return replace(recipe, batch=_near(random, BATCHES, recipe.batch, factor), options=tuple(options.items()))


def _near(random: Random, values: tuple[int, ...], middle: int, factor: float) -> int:
    return random.choice([value for value in values if middle / factor <= value <= middle * factor])


def _between(random: Random, low: float, high: float) -> float:
    """Returns a number between two, evenly distributed on a logarithmic scale."""
    return float(low * (high / low) ** random.random())


def _digits(value: float) -> float:
    return float(f"{value:.3g}")

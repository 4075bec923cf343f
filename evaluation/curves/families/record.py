"""Records the families: trains every run of 60 families to learn from and 60 to judge by, and writes ``runs.csv``.

Run from the top of the tree, by hand and seldom (the result is committed; about an hour and a half on one core):

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.families.record

A family counts when its base meets the criteria of ``evaluation.curves.record``. Its retrainings are written whether
they meet them or not, with the reason, because operators' jobs fail too.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from multiprocessing import Pool

from evaluation.curves.families.draw import FAMILIES, USES, Use, bases, retrainings
from evaluation.curves.families.runs import FILE, KEPT, FamilyRun, save
from evaluation.curves.recipes import Recipe
from evaluation.curves.record import record, refusal
from topologies.signals import exit_status

DIVERGED = "diverged"
AHEAD = 8
"""Train this many bases at once, of which those after the last family that counts are dropped."""


def family(task: tuple[Use, Recipe]) -> list[FamilyRun]:
    """Trains a family. Returns its runs in order, or none where its base does not meet the criteria."""
    use, base = task
    warnings.simplefilter("ignore")
    runs: list[FamilyRun] = []
    correct: tuple[int, ...]
    for variation, recipe in retrainings(base):
        try:
            run = record(recipe)
        except ValueError:  # the weights have run away
            verdict, correct, held_out = DIVERGED, (), 1
        else:
            verdict, held_out = refusal(run) or KEPT, run.held_out
            correct = tuple(round(accuracy * held_out) for accuracy in run.accuracy)
        if not runs and verdict != KEPT:
            return []
        runs.append(
            FamilyRun(
                use=use,
                family=base.name,
                variation=variation,
                label_noise=recipe.label_noise,
                model=recipe.settings,
                batch=recipe.batch,
                every=recipe.every,
                seed=recipe.seed,
                verdict=verdict,
                held_out=held_out,
                correct=correct,
            )
        )
    return runs


def families(use: Use) -> Iterator[list[FamilyRun]]:
    """Yields the families of a use, as they are drawn, until there are ``FAMILIES``."""
    counted = 0
    drawn = bases(use)
    with Pool(os.cpu_count()) as pool:
        while counted < FAMILIES:
            tasks = [(use, next(drawn)) for _ in range(AHEAD)]
            for runs in pool.imap(family, tasks):
                if runs and counted < FAMILIES:
                    counted += 1
                    kept = sum(run.verdict == KEPT for run in runs)
                    sys.stderr.write(f"{use} {counted} of {FAMILIES}: {runs[0].family}, {kept} of {len(runs)} kept\n")
                    yield runs


def main() -> int:
    """Record all families and write the file."""
    save(run for use in USES for runs in families(use) for run in runs)
    sys.stderr.write(f"{FILE.name} is written\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

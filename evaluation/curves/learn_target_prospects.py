"""Learns ``controller/curves/target_prospects.json``: what recorded runs tell of jobs that declare a target.

Run this by hand from the top of the tree; it takes about two minutes on one core:

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.learn_target_prospects

The runs are those of ``evaluation.curves.learn_prospects``. Each is replayed with targets as users declare them: the
metric at 90 % of its gap, times 1 + e, where e is from a normal distribution with one of the standard deviations of
``ERRORS``. What is learned is when the run's true 90 % comes. So the trees trust a target as far as targets can be
trusted, and a wrong one costs little. docs/decisions/jpas.md says why, and why exact targets weigh most.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

import numpy as np

from controller.curves import fit as curve_fit
from controller.curves.histories import MIN_POINTS
from controller.model import Metric, Progress
from evaluation.curves.learn_prospects import AFTERWARDS, WATCHED, Moments, Run, known_curves, learn, replayed
from simulator.reports.targets import target_iteration, target_value
from topologies.signals import exit_status

FILE = Path(curve_fit.__file__).with_name("target_prospects.json")
FRACTION = curve_fit.T90.fraction
ERRORS: Mapping[float, float] = {0.0: 4.0, 0.05: 1.0, 0.1: 1.0}
"""Each run is seen with one target of each of these relative errors (standard deviations), by what that weighs."""


def declared_moments(runs: Iterable[Run], errors: Mapping[float, float] = ERRORS, *, seed: int = 1) -> Moments:
    """Returns all moments of the runs that reach 90 %, once for each error. ``left`` is to the true 90 %."""
    random = Random(f"declared targets {seed}")
    histories: list[curve_fit.History] = []
    weights, lefts = [], []
    for run in runs:
        first = target_iteration(run, FRACTION)
        if first is None:
            continue
        seen = np.arange(MIN_POINTS, len(run) + 1)
        progress = [Progress(float(i), float(i), metric) for i, metric in enumerate(run, start=1)]
        for error, weight in errors.items():
            target = target_value(run, FRACTION) * (1.0 + random.gauss(0.0, error))
            histories += [curve_fit.History(progress[:k], Metric(), float(len(run)), target) for k in seen.tolist()]
            weights.append(weight * np.where(seen < WATCHED * first, 1.0, AFTERWARDS) / len(seen))
            lefts.append((first - seen) / len(run))
    return Moments(curve_fit.known_numbers(histories), np.concatenate(weights), np.concatenate(lefts))


def main() -> int:
    """Learns the trees, and writes the file."""
    runs = list(replayed(known_curves()))
    forests = {"declared": learn(declared_moments(runs))}
    FILE.write_text(json.dumps(forests, separators=(",", ":")).replace('{"start"', '\n{"start"') + "\n")
    sys.stdout.write(f"{FILE.name}: {len(runs)} runs, {len(ERRORS)} targets each\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

"""Learns ``controller/curves/family_prospects.json``: what earlier runs of a family tell of the next one.

Run this by hand from the top of the tree; it takes some minutes on one core:

    OMP_NUM_THREADS=1 .venv/bin/python -m evaluation.curves.learn_family_prospects

The runs are those of the families that teach (``evaluation.curves.families``, ``study``). Each is replayed over several
lengths, and is shown with other runs of its family where their gate is open. The code is that which keeps them in the
controller. With less weight a run is shown with the runs of another family. So the trees trust a family as far as the
run behaves like its earlier runs, and a wrong family costs little. The trees for jobs that also declare a target
(``both``) see targets with the errors of ``evaluation.curves.learn_target_prospects``. The label is when the run's true
90 % comes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from controller.curves import fit as curve_fit
from controller.curves.earlier import EarlierRuns
from controller.curves.histories import MIN_POINTS
from controller.families.build import history_of
from controller.families.earlier import earlier_runs
from controller.families.families import MAX_RUNS
from controller.model import Job, Metric, Progress
from evaluation.curves.families.runs import KEPT, load
from evaluation.curves.learn_prospects import AFTERWARDS, WATCHED, Moments, Run, learn
from evaluation.curves.learn_target_prospects import ERRORS
from simulator.families import finished_run
from simulator.reports.targets import target_iteration, target_value
from simulator.workloads import curves
from topologies.signals import exit_status

FILE = Path(curve_fit.__file__).with_name("family_prospects.json")
FRACTION = curve_fit.T90.fraction
LENGTHS = (50, 75, 100)
"""The replayed runs have these numbers of iterations, as far as a curve has as many rows."""
HISTORIES: Mapping[bool, float] = {True: 4.0, False: 1.0}
"""Each run is seen with the history of its own family (True) and of another, by what that weighs."""
MIN_RUNS = 2
"""The gate of a family is closed for fewer runs."""


@dataclass(frozen=True, slots=True)
class Example:
    """A run to learn from, the earlier runs that it is shown with, and its weight."""

    run: Run
    earlier: EarlierRuns
    weight: float


def known_families() -> dict[str, list[Run]]:
    """Returns the kept runs of each family that may be learned from."""
    return {name: [run.accuracy for run in runs if run.verdict == KEPT] for name, runs in load("study").items()}


def examples(families: Mapping[str, Sequence[Run]], *, seed: int = 1) -> Iterator[Example]:
    """Yields each run over several lengths, with a history of its own family and of another one, if any is open."""
    random = Random(f"families {seed}")
    names = sorted(families)
    for name in names:
        for number, rows in enumerate(families[name]):
            others = [run for i, run in enumerate(families[name]) if i != number]
            for length in sorted({min(length, len(rows)) for length in LENGTHS}):
                run = curves.replay(rows, length)
                for is_own, weight in HISTORIES.items():
                    known = others if is_own else families[random.choice([other for other in names if other != name])]
                    earlier = _earlier(random, known)
                    if earlier is not None:
                        yield Example(run, earlier, weight)


def moments(shown: Sequence[Example], *, with_targets: bool, seed: int = 1) -> Moments:
    """Returns all moments of the examples whose runs reach 90 %. ``left`` is to the true 90 %."""
    random = Random(f"declared targets of families {seed}")
    histories: list[curve_fit.History] = []
    weights, lefts = [], []
    for example in shown:
        run = example.run
        first = target_iteration(run, FRACTION)
        if first is None:
            continue
        target = None
        if with_targets:
            error = random.choices(list(ERRORS), list(ERRORS.values()))[0]
            target = target_value(run, FRACTION) * (1.0 + random.gauss(0.0, error))
        seen = np.arange(MIN_POINTS, len(run) + 1)
        progress = [Progress(float(i), float(i), metric) for i, metric in enumerate(run, start=1)]
        histories += [
            curve_fit.History(progress[:k], Metric(), float(len(run)), target, example.earlier) for k in seen.tolist()
        ]
        weights.append(example.weight * np.where(seen < WATCHED * first, 1.0, AFTERWARDS) / len(seen))
        lefts.append((first - seen) / len(run))
    return Moments(curve_fit.known_numbers(histories), np.concatenate(weights), np.concatenate(lefts))


def _earlier(random: Random, runs: Sequence[Run]) -> EarlierRuns | None:
    """Returns what some of the runs say of a next one; None where they say nothing that may be used."""
    most = min(len(runs), MAX_RUNS)
    if most < MIN_RUNS:
        return None
    drawn = random.sample(list(runs), random.randint(MIN_RUNS, most))
    kept = [
        finished_run((f"run{number}", 0.0), _replayed(random, rows), ended_at=float(number))
        for number, rows in enumerate(drawn)
    ]
    return earlier_runs(Job("next", (), family=history_of("family", kept, Metric())))


def _replayed(random: Random, rows: Run) -> Run:
    return curves.replay(rows, min(random.choice(LENGTHS), len(rows)))


def main() -> int:
    """Learns the trees, and writes the file."""
    taught = list(examples(known_families()))
    forests = {
        name: learn(moments(taught, with_targets=with_targets))
        for name, with_targets in (("family", False), ("both", True))
    }
    FILE.write_text(json.dumps(forests, separators=(",", ":")).replace('{"start"', '\n{"start"') + "\n")
    sys.stdout.write(f"{FILE.name}: {len(taught)} examples of {len(known_families())} families\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

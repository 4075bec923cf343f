"""The recorded runs of the families, as ``runs.csv`` has them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from evaluation.curves.families.draw import Use, Variation

FILE = Path(__file__).with_name("runs.csv")
KEPT = "kept"
_COLUMNS = (
    "use", "family", "variation", "label_noise", "model", "batch", "every", "seed", "verdict", "held_out", "correct"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FamilyRun:
    """One run: how it was trained, and after each row how many of the held-out samples it classified correctly.

    ``verdict`` is ``kept``, or why the criteria of ``evaluation.curves.record`` refuse the run.
    """

    use: Use
    family: str
    variation: Variation
    label_noise: float
    model: str
    batch: int
    every: int
    seed: int
    verdict: str
    held_out: int
    correct: tuple[int, ...]

    @property
    def accuracy(self) -> tuple[float, ...]:
        """The accuracy on the held-out samples after each row."""
        return tuple(count / self.held_out for count in self.correct)


def load(use: Use) -> dict[str, list[FamilyRun]]:
    """Returns the runs of each family of a use, in the order in which they were trained, refused ones included."""
    families: dict[str, list[FamilyRun]] = {}
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["use"] == use:
                families.setdefault(row["family"], []).append(_read(row))
    return families


def save(runs: Iterable[FamilyRun]) -> None:
    """Write the file, each run as it comes."""
    with FILE.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for run in runs:
            writer.writerow([
                run.use, run.family, run.variation, f"{run.label_noise:g}", run.model, run.batch, run.every, run.seed,
                run.verdict, run.held_out, " ".join(map(str, run.correct)),
            ])  # fmt: skip


def _read(row: dict[str, str]) -> FamilyRun:
    return FamilyRun(
        use=cast("Use", row["use"]),
        family=row["family"],
        variation=cast("Variation", row["variation"]),
        label_noise=float(row["label_noise"]),
        model=row["model"],
        batch=int(row["batch"]),
        every=int(row["every"]),
        seed=int(row["seed"]),
        verdict=row["verdict"],
        held_out=int(row["held_out"]),
        correct=tuple(map(int, row["correct"].split())),
    )

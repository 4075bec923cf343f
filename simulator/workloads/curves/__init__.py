"""The recorded learning curves: held-out accuracy of real training runs, one row an iteration.

``index.csv`` says what each run was, and whether it is for designing policies (``study``) or for measuring them
(``claim``). How they came about is said in ``evaluation/curves/record.py``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

FOLDER = Path(__file__).resolve().parent
Use = Literal["study", "claim"]


class CurveError(Exception):
    """A curve that is not there or cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Curve:
    """An entry of the index. Iterations count from 1; the t90 and t95 ones are None if a run never gets there."""

    name: str
    use: Use
    iterations: int
    converged: float
    t90_iteration: int | None
    t95_iteration: int | None
    data: str
    model: str


@cache
def index() -> tuple[Curve, ...]:
    """All recorded curves, by name. Raises CurveError."""
    path = FOLDER / "index.csv"
    try:
        with path.open(newline="") as file:
            return tuple(_entry(row) for row in csv.DictReader(file))
    except (OSError, KeyError, ValueError) as error:
        raise CurveError(f"{path}: not a readable index of curves: {error}") from error


def names(use: Use) -> tuple[str, ...]:
    """The curves of one half, by name."""
    return tuple(curve.name for curve in index() if curve.use == use)


@cache
def load(name: str, folder: Path = FOLDER) -> tuple[float, ...]:
    """The accuracy of iterations 1, 2, ... of a curve. Raises CurveError."""
    path = folder / f"{name}.csv"
    if Path(name).name != name or name == "index" or not path.is_file():
        raise CurveError(f"there is no curve called {name!r}; those that there are stand in {folder / 'index.csv'}")
    values: list[float] = []
    try:
        rows = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        for row in csv.DictReader(rows):
            if int(row["iteration"]) != len(values) + 1:
                raise ValueError(f"iteration {row['iteration']} where {len(values) + 1} was due")
            values.append(float(row["accuracy"]))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise CurveError(f"{path}: not a curve (rows of iteration,accuracy from iteration 1): {error}") from error
    if not values:
        raise CurveError(f"{path}: the curve has no rows")
    return tuple(values)


def replay(rows: Sequence[float], iterations: int) -> tuple[float, ...]:
    """A curve spread over a run of n ``iterations``: the metric of iteration k (from 1) is row ceil(k x rows / n).

    The last iteration shows the last row. Raises ValueError for fewer than one iteration or row.
    """
    if not rows or iterations < 1:
        raise ValueError(f"there is nothing to replay: {len(rows)} rows over {iterations} iterations")
    return tuple(rows[-(-k * len(rows) // iterations) - 1] for k in range(1, iterations + 1))


def _entry(row: dict[str, str]) -> Curve:
    if row["use"] not in ("study", "claim"):
        raise ValueError(f"{row['name']}: use must be study or claim, not {row['use']!r}")
    return Curve(
        name=row["name"],
        use=cast(Use, row["use"]),
        iterations=int(row["iterations"]),
        converged=float(row["converged"]),
        t90_iteration=int(row["t90_iteration"]) if row["t90_iteration"] else None,
        t95_iteration=int(row["t95_iteration"]) if row["t95_iteration"] else None,
        data=row["data"],
        model=row["model"],
    )

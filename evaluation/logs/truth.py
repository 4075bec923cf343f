"""What a training knows about itself: its iterations, and its metric at some of them. Readers are tested against it.

The trainings import this module in environments of their own, so it needs the standard library alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

VARIABLE = "RECORD_LOGS_TRUTH"
"""The environment variable that names the file where a training writes its truth."""

Direction = Literal["max", "min"]
Counts = Literal["steps", "epochs"]


@dataclass
class Series:
    """One metric over a run. ``counts`` says what ``iterations`` and the first values of ``points`` are.

    ``iterations`` is how many the run has, None where it does not say. Epochs may have fractions.
    """

    metric: str
    direction: Direction
    iterations: float | None
    counts: Counts = "steps"
    points: list[tuple[float, float]] = field(default_factory=list)

    def add(self, iteration: float, value: float) -> None:
        """Add a point; iterations count from 1, as the number of optimiser steps (or epochs) that are done."""
        self.points.append((iteration, float(value)))


OUTPUT = "output"
"""The name in Truth.files of the file that has the output, which the training does not know."""


@dataclass
class Truth:
    """The series of a run, which its output shows, and the series of each file that it keeps.

    ``files[OUTPUT]`` is for an output that shows another series (another metric, or epochs alone), or none.
    """

    run: Series
    files: dict[str, Series | None] = field(default_factory=dict)

    def write(self) -> None:
        """Write what is known to the file that the environment names. Without that variable nothing is written."""
        if path := os.environ.get(VARIABLE):
            files = {name: asdict(series) if series else None for name, series in self.files.items()}
            document = asdict(self.run) | {"files": files}
            Path(path).write_text(json.dumps(document), encoding="utf-8")

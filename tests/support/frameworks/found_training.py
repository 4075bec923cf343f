"""A training of evaluation/logs, started as people do: by a launcher, with its output in a file."""

from __future__ import annotations

import csv
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.logs.truth import VARIABLE
from tests.support.paths import ROOT

TRAININGS = "evaluation.logs.trainings.trainers"


@dataclass(frozen=True)
class Known:
    """What the training knew: the iterations of the run, and those that are done; a metric, and its last value."""

    iterations: float | None
    done: float
    metric: str
    last: float


class FoundTraining:
    """A training in a folder of its own, which knows nothing of the agent. ``args`` are the module and its options."""

    def __init__(self, folder: Path, *args: str) -> None:
        self._folder, self._args = folder, args
        self._truth = folder / "truth.json"

    def run(self, launcher: Sequence[str] = (sys.executable,), **variables: str) -> None:
        """Run it to its end, with its output in ``train.log``. ``variables`` are of its environment."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": path, VARIABLE: str(self._truth)} | variables
        command = [*launcher, "-m", f"{TRAININGS}.{self._args[0]}", *self._args[1:]]
        with (self._folder / "train.log").open("wb") as log:
            done = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=self._folder, env=environment, check=False, timeout=240,
            )  # fmt: skip
        assert done.returncode == 0, (self._folder / "train.log").read_text()

    def knew(self, metric: str, file: str) -> Known:
        """Returns what the training knew of itself, and the last value of a metric in a file of the framework's."""
        path = self._folder / file
        rows = json.loads(path.read_text())["log_history"] if path.suffix == ".json" else _rows(path)
        values = [row[metric] for row in rows if row.get(metric) not in (None, "")]
        iterations = json.loads(self._truth.read_text())["iterations"]
        return Known(iterations, iterations, metric, float(values[-1]))


def job_of(name: str) -> str:
    """Returns the id of a job that this user names by its environment."""
    return f"{pwd.getpwuid(os.getuid()).pw_name}.{name}"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))

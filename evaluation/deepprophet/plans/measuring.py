"""Measures and predicts one plan: real ranks in namespaces, and the command with ``--mapping``."""

from __future__ import annotations

import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from evaluation.deepprophet.arms import NETWORK_FILE, QUICK_SECONDS, SECONDS, digest, one_machine
from evaluation.deepprophet.plans.cases import PlanCase
from evaluation.deepprophet.processes import python, run, run_ranks
from topologies.errors import LabError

MAPPING_FILE = "mapping.json"


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the command said: seconds, their 80 % interval, bytes of all ranks in an iteration, and how long it took."""

    seconds: float
    low: float
    high: float
    bytes: float
    took_seconds: float


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The results of a case. ``seconds`` is the median of an iteration.

    ``sent`` are the bytes that all ranks sent in an iteration, headers and acknowledgements included. A first
    measurement has no prediction. ``calibrated`` is the digest of the calibration that the prediction used.
    """

    cores: int
    seconds: float
    sent: float
    predicted: Predicted | None = None
    calibrated: str = ""
    datapath: str = "none"


def measure_first(case: PlanCase, *, quick: bool, stop: Event) -> PlanResult:
    """Measures a case for the first time. Raises LabError, CalledProcessError, OSError."""
    seconds, sent = _real(case, QUICK_SECONDS if quick else SECONDS, stop)
    return PlanResult(os.cpu_count() or 1, seconds, sent)


def measure(case: PlanCase, calibration: Path, *, quick: bool, stop: Event) -> PlanResult:
    """Predicts a case, and measures it. Raises LabError, CalledProcessError, OSError."""
    if not calibration.exists():
        raise LabError(f"{calibration} does not exist: the calibration comes first, and it failed")
    predicted = _predicted(case, calibration, stop)
    seconds, sent = _real(case, QUICK_SECONDS if quick else SECONDS, stop)
    return PlanResult(os.cpu_count() or 1, seconds, sent, predicted, digest(calibration))


def _real(case: PlanCase, seconds: float, stop: Event) -> tuple[float, float]:
    """Returns the median seconds of an iteration of real ranks, and the bytes that they sent for it."""
    with TemporaryDirectory() as folder:
        command = [python(), "-m", "evaluation.deepprophet.rank", case.model, "--batch-size", str(case.batch_size)]
        command += ["--seconds", str(seconds), "--mapping", str(_written(Path(folder) / MAPPING_FILE, case.mapping))]
        output = json.loads(run_ranks(command, case.ranks, case.rate_bps, stop))
    return statistics.median(output["seconds"]), output["sent"]


def _predicted(case: PlanCase, calibration: Path, stop: Event) -> Predicted:
    with TemporaryDirectory() as folder:
        command = [
            python(), "-m", "deepprophet", f"evaluation.deepprophet.plans.models:{case.model}", "--json",
            "--calibration", str(calibration), "--batch-size", str(case.batch_size), "--workers", str(case.ranks),
            "--network", str(_written(Path(folder) / NETWORK_FILE, one_machine(case.ranks))),
            "--mapping", str(_written(Path(folder) / MAPPING_FILE, case.mapping)),
        ]  # fmt: skip
        if case.rate_bps is not None:
            command += ["--link-rate", str(case.rate_bps)]
        began = time.monotonic()
        (prediction,) = json.loads(run([command], stop))["predictions"]
        took = time.monotonic() - began
    low, high = prediction["interval_seconds"]
    return Predicted(prediction["iteration_seconds"], low, high, prediction["bytes_per_iteration"], took)


def _written(path: Path, contents: Any) -> Path:
    path.write_text(json.dumps(contents))
    return path

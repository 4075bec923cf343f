"""Measures the claim ``deepprophet``: the calibration, real iterations, and predictions, each in a process of its own.

Only these processes need PyTorch; this module and those that import it do not.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from controller.model import BITS_PER_BYTE
from evaluation.deepprophet.drawn import listed
from evaluation.deepprophet.processes import python, run, run_ranks
from topologies.errors import LabError

CALIBRATION = "calibration"
CALIBRATION_FILE = "calibration.json"
RESULT = "result.json"
SECONDS, QUICK_SECONDS = 6.0, 2.0
NETWORK_FILE = "network.json"
DEFAULT_WAY = "default"
"""``trainyard predict`` works in this way by default: it measures operators that the device's table lacks, but only as
many as fit into five seconds."""

COSTED = ("table", "measured", "roofline")
"""The other ways to get operators' costs: from the device's table, and else a roofline (``--measure 0``); with
everything measured that the table lacks (``--measure``); and from rooflines only."""

WAYS = (DEFAULT_WAY, *COSTED)
KINDS = ("compute", "distributed", "more ranks than cores")
"""The kinds of cases whose errors are added up apart."""


@dataclass(frozen=True, slots=True)
class Case:
    """An iteration that is predicted and measured. ``rate_bps`` is None for a single worker."""

    batch_size: int
    workers: int
    rate_bps: float | None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The results of a case.

    ``runs`` are the median seconds of an iteration, one for each time that it was measured. ``predicted`` has, for each
    way, the seconds and their interval. ``compute`` and ``exposed`` are predicted in the default way. ``wire`` is the
    least time that the bytes of a rank take at the link's rate. ``measuring_seconds`` is what the way "measured" spent
    on measuring operators. ``guessed`` is the share of the time that is of operators of unknown families, as predicted.
    """

    batch_size: int
    workers: int
    rate_bps: float | None
    runs: tuple[float, ...]
    predicted: Mapping[str, tuple[float, float, float]]
    compute: float
    exposed: float
    wire: float
    measuring_seconds: float
    guessed: float = 0.0

    @property
    def case(self) -> Case:
        """Returns the case without its results."""
        return Case(self.batch_size, self.workers, self.rate_bps)

    @property
    def seconds(self) -> float:
        """Returns the mean of the runs' medians."""
        return statistics.fmean(self.runs)

    @property
    def relative_difference(self) -> float | None:
        """Returns the difference of two runs relative to their mean; None where there was only one."""
        if len(self.runs) < 2:
            return None
        return abs(self.runs[0] - self.runs[1]) / statistics.fmean(self.runs[:2])


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The results of a group. ``calibrated`` is the digest of the calibration that the predictions used."""

    cores: int
    cases: tuple[CaseResult, ...] = ()
    operators: tuple[Mapping[str, Any], ...] = ()
    calibration: Mapping[str, Any] = field(default_factory=dict)
    predict_seconds: float | None = None
    calibrated: str = ""
    datapath: str = "none"


def calibrate(folder: Path, *, quick: bool, stop: Event) -> GroupResult:
    """Calibrates this device into a folder. Raises LabError, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CALIBRATION_FILE
    command = [python(), "-m", "deepprophet", "--calibrate", "--calibration", str(path), "--json"]
    output = run([command + (["--quick"] if quick else [])], stop)
    # The summary is published: it names the file, and not where this machine has it.
    calibration = json.loads(output) | {"calibration": CALIBRATION_FILE}
    return GroupResult(cores=os.cpu_count() or 1, calibration=calibration, calibrated=digest(path))


def measure_first(model: str, cases: Sequence[Case], *, quick: bool, stop: Event) -> GroupResult:
    """Measures one model's cases for the first time. Raises LabError, CalledProcessError, OSError."""
    seconds = QUICK_SECONDS if quick else SECONDS
    results = [
        CaseResult(
            case.batch_size, case.workers, case.rate_bps, (_real(model, case, seconds, stop),), {},
            compute=0.0, exposed=0.0, wire=0.0, measuring_seconds=0.0,
        )
        for case in cases
    ]  # fmt: skip
    return GroupResult(os.cpu_count() or 1, tuple(results))


def measure(model: str, cases: Sequence[Case], calibration: Path, *, quick: bool, stop: Event) -> GroupResult:
    """Predicts one model's cases, and measures them. Raises LabError, CalledProcessError, OSError."""
    if not calibration.exists():
        raise LabError(f"{calibration} does not exist: the calibration comes first, and it failed")
    seconds = QUICK_SECONDS if quick else SECONDS
    cores = os.cpu_count() or 1
    request = json.dumps([[case.batch_size, case.workers, case.rate_bps] for case in cases])
    predictions = json.loads(
        run([[python(), "-m", "evaluation.deepprophet.predictions", model, str(calibration), request]], stop)
    )
    by_default, longest = _by_default(model, cases, calibration, stop)
    runs = {case: (_real(model, case, seconds, stop),) for case in cases}
    results = []
    rows = {Case(row["batch_size"], row["workers"], row["rate_bps"]): row for row in predictions["cases"]}
    for case in cases:
        row, default = rows[case], by_default[case]
        ways = {way: (row[way]["seconds"], row[way]["low"], row[way]["high"]) for way in COSTED}
        ways[DEFAULT_WAY] = (default["iteration_seconds"], *default["interval_seconds"])
        sent = default["bytes_per_iteration"] / case.workers * BITS_PER_BYTE
        results.append(
            CaseResult(
                case.batch_size, case.workers, case.rate_bps, runs[case], ways,
                compute=default["compute_seconds"], exposed=default["exposed_communication_seconds"],
                wire=sent / case.rate_bps if case.rate_bps else 0.0, measuring_seconds=row["measuring_seconds"],
            )
        )  # fmt: skip
    return GroupResult(
        cores, tuple(results), tuple(predictions["operators"]), predict_seconds=longest, calibrated=digest(calibration)
    )


def measure_drawn(model: str, case: Case, calibration: Path, *, quick: bool, stop: Event) -> GroupResult:
    """Predicts a drawn model by the command alone, and measures it. Raises LabError, CalledProcessError, OSError."""
    if not calibration.exists():
        raise LabError(f"{calibration} does not exist: the calibration comes first, and it failed")
    by_default, longest = _by_default(model, (case,), calibration, stop)
    default = by_default[case]
    runs = (_real(model, case, QUICK_SECONDS if quick else SECONDS, stop),)
    predicted = {DEFAULT_WAY: (default["iteration_seconds"], *default["interval_seconds"])}
    result = CaseResult(
        case.batch_size, case.workers, case.rate_bps, runs, predicted, compute=default["compute_seconds"],
        exposed=0.0, wire=0.0, measuring_seconds=0.0, guessed=default["cost_shares"]["guess"],
    )  # fmt: skip
    return GroupResult(os.cpu_count() or 1, (result,), predict_seconds=longest, calibrated=digest(calibration))


def digest(path: Path) -> str:
    """Returns by what calibration predictions were made. Raises OSError."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _by_default(
    model: str, cases: Sequence[Case], calibration: Path, stop: Event
) -> tuple[dict[Case, dict[str, Any]], float]:
    """Returns the command's prediction of each case, and the wall seconds of the longest command."""
    drawn = listed.models().get(model)
    prediction_of: dict[Case, dict[str, Any]] = {}
    longest = 0.0
    with TemporaryDirectory() as folder:
        network_file = Path(folder) / NETWORK_FILE
        network_file.write_text(json.dumps(one_machine(max(case.workers for case in cases))))
        asked = (
            [f"evaluation.deepprophet.models:{model.replace('-', '_')}"]
            if drawn is None
            else drawn.arguments(Path(folder))
        )
        for size in dict.fromkeys(case.batch_size for case in cases):
            of_size = [case for case in cases if case.batch_size == size]
            command = [
                python(), "-m", "deepprophet", *asked, "--calibration", str(calibration), "--json",
                "--network", str(network_file), "--batch-size", str(size),
                "--workers", ",".join(str(count) for count in dict.fromkeys(case.workers for case in of_size)),
            ]  # fmt: skip
            if rates := [str(rate) for rate in dict.fromkeys(case.rate_bps for case in of_size) if rate is not None]:
                command += ["--link-rate", ",".join(rates)]
            began = time.monotonic()
            output = json.loads(run([command], stop))
            longest = max(longest, time.monotonic() - began)
            for prediction in output["predictions"]:
                prediction_of[Case(size, prediction["workers"], prediction["link_bps"])] = prediction
    return prediction_of, longest


def one_machine(count: int) -> dict[str, Any]:
    """Returns a network file's contents: ``count`` hosts of one machine, which share its cores."""
    cores = os.cpu_count() or 1
    return {"hosts": [{"name": f"h{number}", "machine": "m", "cores": cores} for number in range(count)]}


def _real(model: str, case: Case, seconds: float, stop: Event) -> float:
    """Measures real iterations, and returns their median in seconds."""
    command = [python(), "-m", "evaluation.deepprophet.rank", model, "--batch-size", str(case.batch_size)]
    command += ["--seconds", str(seconds)]
    output = run_ranks(command, case.workers, case.rate_bps, stop)
    seconds_of_iterations: list[float] = json.loads(output)["seconds"]
    return statistics.median(seconds_of_iterations)

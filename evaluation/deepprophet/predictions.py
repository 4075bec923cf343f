"""Predicts cases for the evaluation: ``python -m evaluation.deepprophet.predictions MODEL CALIBRATION CASES``.

It needs PyTorch. CASES is JSON: a list of [batch size, workers, link rate or null]. The output is one JSON document. It
has each case predicted with the table and rooflines of the calibration, with micro-benchmarks of everything that the
table lacks, and with rooflines only. It also has the error of single operators in each of these ways, compared with
their time inside a real iteration.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepprophet.costs import costs, store
from deepprophet.costs.calibration import Calibration
from deepprophet.costs.measured import Measurement
from deepprophet.device import bench
from deepprophet.device.loop import iteration
from deepprophet.device.missing import measure
from deepprophet.graph.graph import Graph
from deepprophet.graph.subject import Subject, subject
from deepprophet.graph.trace import trace
from deepprophet.predict import network
from deepprophet.predict.prediction import Configuration, predict
from evaluation.deepprophet import models
from evaluation.deepprophet.arms import one_machine

CPU = torch.device("cpu")
ROUNDS = 7
MEASURE_AGAIN = 60
"""Measure this many of the costliest operators a second time; no error can be lower than the difference between the
two measurements."""


def main(arguments: list[str] | None = None) -> int:
    """Predicts the cases, and writes the JSON document."""
    model, path, cases = sys.argv[1:] if arguments is None else arguments
    torch.set_num_threads(1)
    known = store.read(Path(path), "this device", 1)
    wanted: dict[int, list[tuple[int, float | None]]] = {}
    for batch_size, workers, rate in json.loads(cases):
        wanted.setdefault(batch_size, []).append((workers, rate))
    rows: list[dict[str, Any]] = []
    operators = []
    for batch_size, cases_of_size in wanted.items():
        given = subject(models.factory(model)(batch_size))
        graph = trace(given)
        began = time.perf_counter()
        fresh: dict[str, Measurement] = {}
        measure(graph, known, CPU, seconds=math.inf, effort=bench.THOROUGH, fresh=fresh)
        measuring = time.perf_counter() - began
        ways: dict[str, tuple[Calibration, dict[str, Measurement]]] = {
            "table": (known, {}), "measured": (known, fresh), "roofline": (known.without_table(), {}),
        }  # fmt: skip
        for workers, rate in cases_of_size:
            spec = network.NetworkSpec.model_validate(one_machine(workers))
            configuration = Configuration(workers, "ring", spec if rate is None else network.at_rate(spec, rate))
            row: dict[str, Any] = {"batch_size": batch_size, "workers": workers, "rate_bps": rate}
            row["measuring_seconds"] = measuring
            for way, (calibration, more) in ways.items():
                prediction = predict(graph, calibration, more, configuration)
                row[way] = {"seconds": prediction.seconds, "low": prediction.low, "high": prediction.high}
            rows.append(row)
        operators.append({"batch_size": batch_size, **_operators(graph, given, ways)})
    sys.stdout.write(json.dumps({"cases": rows, "operators": operators}) + "\n")
    return 0


class _Clock(TorchDispatchMode):
    """Times each operator of a real iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[tuple[str, float]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        if name.startswith(("prim.", "profiler.")):
            return func(*args, **(kwargs or {}))
        began = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        self.seconds.append((name, time.perf_counter() - began))
        return result


def _operators(
    graph: Graph, given: Subject, ways: dict[str, tuple[Calibration, dict[str, Measurement]]]
) -> dict[str, Any]:
    """Returns for each way the mean error of an operator, weighted by its time in a real iteration."""
    run = iteration(given, "sgd", CPU)
    for _ in range(3):
        run()
    rounds = []
    for _ in range(ROUNDS):
        with _Clock() as clock:
            run()
        rounds.append(clock.seconds)
    names = [operator.key.partition('"')[2].partition('"')[0] for operator in graph.operators]
    same = all([name for name, _ in seconds] == names for seconds in rounds)
    errors: dict[str, Any] = {
        "count": len(names),
        "same_as_traced": same,
        "again": _difference_of_two(graph, ways["measured"][1]),
    }
    if not same:
        return errors
    inside = [statistics.median(seconds[place][1] for seconds in rounds) for place in range(len(names))]
    whole = sum(inside)
    for way, (calibration, fresh) in ways.items():
        parts = costs.costs(graph, calibration, fresh)
        chosen = [n for n, part in enumerate(parts) if way != "table" or part.way == "table"]
        weight = sum(inside[n] for n in chosen)
        error = sum(abs(parts[n].seconds - inside[n]) for n in chosen)
        errors[way] = {"error": error / weight if weight else None, "share_of_time": weight / whole}
    return errors


def _difference_of_two(graph: Graph, fresh: dict[str, Measurement]) -> float | None:
    """Returns the relative difference of two measurements of the same operators, weighted by time."""
    costliest = sorted(
        {operator.key for operator in graph.operators if operator.key in fresh}, key=lambda key: -fresh[key].near
    )[:MEASURE_AGAIN]
    difference, whole = 0.0, 0.0
    for key in costliest:
        try:
            second = bench.measure(key, CPU)
        except bench.MeasurementError:
            continue
        difference += abs(second.near - fresh[key].near)
        whole += (second.near + fresh[key].near) / 2
    return difference / whole if whole else None


if __name__ == "__main__":
    sys.exit(main())

"""Predictions to be judged: ``python -m evaluation.deepprophet.guesses MODEL CALIBRATION CASES``. Needs PyTorch.

CASES is JSON: a list of [batch size, workers, link rate or null]. It tells one JSON document: each case predicted with
the table and rooflines of the calibration, with micro-benchmarks of all that is not in the table, and with rooflines
only; and each operator alone in each of these ways beside what it took inside a real iteration.
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
"""Operators that are measured a second time, the costliest: what the same thing differs by is the least that can be
had.
"""


def main(arguments: list[str] | None = None) -> int:
    """Predict."""
    model, path, cases = sys.argv[1:] if arguments is None else arguments
    torch.set_num_threads(1)
    known = store.read(Path(path), "this device", 1)
    wanted: dict[int, list[tuple[int, float | None]]] = {}
    for batch_size, workers, rate in json.loads(cases):
        wanted.setdefault(batch_size, []).append((workers, rate))
    made: list[dict[str, Any]] = []
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
            described = network.NetworkSpec.model_validate(one_machine(workers))
            asked = Configuration(workers, "ring", described if rate is None else network.at_rate(described, rate))
            row: dict[str, Any] = {"batch_size": batch_size, "workers": workers, "rate_bps": rate}
            row["measuring_seconds"] = measuring
            for way, (calibration, more) in ways.items():
                found = predict(graph, calibration, more, asked)
                row[way] = {"seconds": found.seconds, "low": found.low, "high": found.high}
            made.append(row)
        operators.append({"batch_size": batch_size, **_operators(graph, given, ways)})
    sys.stdout.write(json.dumps({"cases": made, "operators": operators}) + "\n")
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
    """By way: the mean error of an operator, each weighed by the time that it takes in a real iteration."""
    run = iteration(given, "sgd", CPU)
    for _ in range(3):
        run()
    rounds = []
    for _ in range(ROUNDS):
        with _Clock() as clock:
            run()
        rounds.append(clock.seconds)
    names = [operator.key.partition('"')[2].partition('"')[0] for operator in graph.operators]
    same = all([name for name, _ in one] == names for one in rounds)
    answer: dict[str, Any] = {"count": len(names), "same_as_traced": same, "again": _again(graph, ways["measured"][1])}
    if not same:
        return answer
    inside = [statistics.median(one[place][1] for one in rounds) for place in range(len(names))]
    whole = sum(inside)
    for way, (calibration, fresh) in ways.items():
        parts = costs.costs(graph, calibration, fresh)
        chosen = [n for n, part in enumerate(parts) if way != "table" or part.way == "table"]
        weight = sum(inside[n] for n in chosen)
        error = sum(abs(parts[n].seconds - inside[n]) for n in chosen)
        answer[way] = {"error": error / weight if weight else None, "share_of_time": weight / whole}
    return answer


def _again(graph: Graph, fresh: dict[str, Measurement]) -> float | None:
    """How far two measurements of the same operators are apart, weighed by time."""
    found = sorted(
        {operator.key for operator in graph.operators if operator.key in fresh}, key=lambda key: -fresh[key].near
    )[:MEASURE_AGAIN]
    apart, whole = 0.0, 0.0
    for key in found:
        try:
            second = bench.measure(key, CPU)
        except bench.MeasurementError:
            continue
        apart += abs(second.near - fresh[key].near)
        whole += (second.near + fresh[key].near) / 2
    return apart / whole if whole else None


if __name__ == "__main__":
    sys.exit(main())

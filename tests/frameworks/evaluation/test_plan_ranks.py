"""Plans of training on real ranks in namespaces: they send the bytes that are predicted, and run what is traced."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from deepprophet.graph.plans import ModelPlan
from deepprophet.graph.trace import TraceOptions, trace
from deepprophet.predict.mapping import MappingSpec
from evaluation.deepprophet.plans import cases, measuring
from evaluation.deepprophet.plans.cases import PlanCase
from evaluation.deepprophet.plans.training import iteration_of
from evaluation.deepprophet.subjects import made
from tests.support.frameworks.running_operators import Recorder, forget

CASES = {case.name: case for case in cases.cases()}


@pytest.mark.parametrize(
    "name",
    [
        "plan-accumulate-ddp-mlp", "plan-fsdp-gpt", "plan-fsdp-keep-cnn", "plan-tensor-gpt", "plan-pipeline-gpipe-cnn",
        "plan-pipeline-1f1b-gpt",
    ],
)  # fmt: skip
def test_ranks_send_what_is_predicted(name: str, calibrated: Path) -> None:
    found = measuring.measure(CASES[name], calibrated, quick=True, stop=threading.Event())
    assert found.predicted is not None
    assert found.predicted.low < found.predicted.seconds < found.predicted.high
    assert found.predicted.took_seconds > 0
    assert found.seconds > 0
    assert found.calibrated
    # Headers and acknowledgements come on top.
    assert found.predicted.bytes < found.sent < 1.03 * found.predicted.bytes


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.ranks == 1], ids=lambda case: case.name)
def test_a_rank_runs_what_is_traced(case: PlanCase) -> None:
    spec = MappingSpec.model_validate_json(json.dumps(case.mapping))
    graph = trace(made(case.model, 2), TraceOptions(plan=ModelPlan(spec.checkpoint), micro_batches=spec.accumulate))
    run = iteration_of(made(case.model, 2), spec)
    run()
    with Recorder() as recorder:
        run()
    traced = [forget(operator.key) for operator in graph.operators]
    if spec.accumulate > 1:
        # The batches after the second are as that one.
        last = next(n for n, operator in enumerate(graph.operators) if operator.phase == "optimizer")
        traced[last:last] = traced[graph.later : last] * (spec.accumulate - 2)
    assert traced == list(map(forget, recorder.keys))


def test_a_single_rank_is_measured_without_a_network() -> None:
    found = measuring.measure_first(CASES["plan-checkpoint-mlp"], quick=True, stop=threading.Event())
    assert (found.sent, found.predicted) == (0.0, None)
    assert found.seconds > 0

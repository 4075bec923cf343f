"""DeepProphet's trace beside what PyTorch really runs: the same operators, the same shapes, and nothing computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from deepprophet.device import bench
from deepprophet.device.calibration_layers import layers
from deepprophet.device.calibration_models import HAS_EXPERTS
from deepprophet.device.calibration_set import exercises
from deepprophet.errors import TraceError
from deepprophet.graph.graph import Graph, Parameter
from deepprophet.graph.recording.values import argument
from deepprophet.graph.refusals import refuse
from deepprophet.graph.spec import Call, parse
from deepprophet.graph.subject import subject
from deepprophet.graph.trace import TraceOptions, trace
from deepprophet.predict.buckets import FIRST_BYTES, LIMIT_BYTES, buckets
from evaluation.deepprophet import models
from tests.support.frameworks import prophet_subjects
from tests.support.frameworks.running_operators import forget, really

CPU = torch.device("cpu")


MODELS = [name for name in models.FAMILIES if name != "lstm"]


@pytest.mark.parametrize("name", MODELS)
def test_traced_operators_are_those_that_run(name: str) -> None:
    given = subject(models.factory(name)(3))
    traced = [operator.key for operator in trace(given).operators]
    assert traced == really(given, "sgd")


def test_recurrent_library_differs_in_its_own_workspace_only() -> None:
    given = subject(models.factory("lstm")(3))
    traced = [parse(operator.key).name for operator in trace(given).operators]
    run = [parse(key).name for key in really(given, "sgd")]
    # Real gradients of the library are laid out as their parameters are; traced ones are copied into that.
    copying = {"aten.detach.default", "aten.new_empty_strided.default", "aten.copy_.default"}
    assert [name for name in traced if name not in copying] == [name for name in run if name not in copying]


@pytest.mark.parametrize("optimizer", ["momentum", "adam", "adamw", "none"])
def test_optimisers_are_traced_as_they_run(optimizer: str) -> None:
    given = subject(prophet_subjects.adapted())
    traced = [forget(operator.key) for operator in trace(given, TraceOptions(optimizer)).operators]
    assert traced == [forget(key) for key in really(given, optimizer)]
    assert ("optimizer" in {operator.phase for operator in trace(given, TraceOptions(optimizer)).operators}) == (
        optimizer != "none"
    )


@pytest.mark.parametrize("name", ["documented", "tokenized", "tossing", "labelled"])
def test_batches_are_given_as_they_are_in_training(name: str) -> None:
    given = subject(getattr(prophet_subjects, name)())
    assert [forget(operator.key) for operator in trace(given).operators] == list(map(forget, really(given, "sgd")))


def test_tracing_computes_nothing_and_changes_nothing() -> None:
    given = subject(prophet_subjects.watched())
    before = {name: value.clone() for name, value in given.model.state_dict().items()}
    prophet_subjects.SEEN.clear()
    graph = trace(given, TraceOptions("adam"))
    assert set(prophet_subjects.SEEN) == {"FakeTensor"}
    assert all(parameter.grad is None for parameter in given.model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in given.model.state_dict().items())
    assert graph.gradient_bytes == 4 * (12 * 20 + 20 + 20 * 3 + 3)
    assert {operator.phase for operator in graph.operators} == {"forward", "backward", "optimizer"}
    assert {operator.module for operator in graph.operators if operator.family == "matmul"} == {"first", "second"}


def test_wrapped_models_are_refused() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        copies = DistributedDataParallel(prophet_subjects.Watched())
        with pytest.raises(TraceError, match=r"the model is wrapped in DistributedDataParallel: .* --workers N"):
            refuse(copies)
        sharded = prophet_subjects.Watched()
        fully_shard(sharded.first, mesh=init_device_mesh("cpu", (1,)))
        with pytest.raises(TraceError, match="its module first is sharded by FSDP: give the model before that"):
            refuse(sharded)
    finally:
        dist.destroy_process_group()


def test_gradients_come_from_the_back() -> None:
    parameters = trace(subject(prophet_subjects.watched())).parameters
    ready = {parameter.name: parameter.ready for parameter in parameters}
    assert max(ready["second.weight"], ready["second.bias"]) < min(ready["first.weight"], ready["first.bias"])


def test_shared_weights_are_one_parameter_that_is_ready_when_both_parts_are() -> None:
    graph = trace(subject(prophet_subjects.adapted()))
    names = [parameter.name for parameter in graph.parameters]
    assert "words.weight" in names
    assert "out.weight" not in names
    (shared,) = [parameter for parameter in graph.parameters if parameter.name == "words.weight"]
    assert shared.ready == max(parameter.ready for parameter in graph.parameters if parameter.ready is not None)
    # Running mean and variance are one type of number, the count of batches another.
    assert sorted(graph.buffer_bytes) == [8, 2 * 7 * 4]


def test_operators_know_whose_results_they_use() -> None:
    graph = trace(subject(prophet_subjects.watched()))
    assert all(before < place for place, operator in enumerate(graph.operators) for before in operator.after)
    assert sum(bool(operator.after) for operator in graph.operators) > len(graph.operators) / 2


def test_other_batch_and_other_numbers() -> None:
    given = subject(prophet_subjects.adapted())
    plain, double = trace(given), trace(given, TraceOptions(batch_size=8))
    half = trace(given, TraceOptions(dtype="bfloat16"))
    assert (plain.batch_size, double.batch_size) == (4, 8)
    assert sum(o.flops for o in double.operators if o.family == "matmul") == pytest.approx(
        2 * sum(o.flops for o in plain.operators if o.family == "matmul")
    )
    assert half.gradient_bytes * 2 == plain.gradient_bytes
    # Word numbers stay whole numbers; what was computed with is halved.
    assert any('"int64",[4,7]' in operator.key for operator in half.operators)
    floats = [t.dtype for o in half.operators if o.family == "matmul" for t in parse(o.key).tensors()]
    assert set(floats) == {"bfloat16"}
    assert len(half.operators) == len(plain.operators)
    assert all(parameter.dtype is torch.float32 for parameter in given.model.parameters())


@pytest.mark.parametrize("name", ["resnet18", "decoder", "mlp-deep", "translator"])
def test_buckets_are_those_of_pytorch(name: str) -> None:
    graph = trace(subject(models.factory(name)(2)))
    coming = sorted(graph.parameters, key=lambda parameter: parameter.ready)
    tensors = [torch.empty(parameter.bytes // 4) for parameter in coming]
    wanted, _ = dist._compute_bucket_assignment_by_size(
        tensors, [FIRST_BYTES, LIMIT_BYTES], [False] * len(tensors), list(range(len(tensors)))
    )
    found = [list(bucket.parameters) for bucket in buckets(graph)]
    assert sorted(found) == sorted([coming[place].name for place in group] for group in wanted)


def test_buckets_of_two_types_of_numbers_are_those_of_pytorch() -> None:
    kinds = [torch.float32, torch.bfloat16, torch.float32, torch.bfloat16] * 20
    tensors = [torch.empty(300_000 + 7_000 * n, dtype=kind) for n, kind in enumerate(kinds)]
    parameters = tuple(Parameter(str(n), t.numel() * t.element_size(), str(t.dtype), n) for n, t in enumerate(tensors))
    wanted, _ = dist._compute_bucket_assignment_by_size(
        tensors, [FIRST_BYTES, LIMIT_BYTES], [False] * len(tensors), list(range(len(tensors)))
    )
    found = [[int(name) for name in bucket.parameters] for bucket in buckets(Graph((), parameters, (), 1, "float32"))]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("name", ["alexnet", "resnet18", "lstm", "gru", "encoder", "decoder", "dlrm", "wide-deep"])
def test_every_operator_of_a_model_runs_alone(name: str) -> None:
    torch.set_num_threads(1)
    keys = {operator.key for operator in trace(subject(models.factory(name)(2)), TraceOptions("adam")).operators}
    for key in keys:
        found = bench.measure(key, CPU, replace(bench.THOROUGH, seconds=0.0005))
        assert 0 < found.near <= found.far
        assert found.low <= found.near <= found.high


@pytest.mark.skipif(not HAS_EXPERTS, reason="this PyTorch multiplies in no groups")
def test_products_in_groups_are_traced_and_measured_on_any_type_of_number() -> None:
    (given,) = [one for one in exercises() if one.name == "experts-144x6"]
    for dtype in ("float32", "bfloat16"):
        graph = trace(given.subject(), TraceOptions(dtype=dtype))
        products = [operator for operator in graph.operators if operator.family == "grouped-matmul"]
        # Two a layer forward, and back the gradients of rows and of experts for each.
        assert len(products) == 2 * 2 * 3
        assert len({operator.flops for operator in products}) == 1
    for key in {operator.key for operator in trace(given.subject()).operators if operator.family == "grouped-matmul"}:
        assert bench.measure(key, CPU, replace(bench.THOROUGH, seconds=0.001)).near > 0


def test_larger_products_take_longer() -> None:
    torch.set_num_threads(1)

    def seconds(size: int) -> float:
        spec = argument(torch.empty(size, size))
        return bench.measure(Call("aten.mm.default", (spec, spec), {}).key(), CPU).near

    assert seconds(512) > 8 * seconds(128)


def test_roots_are_taken_of_what_has_one() -> None:
    """The root of a negative number takes this processor's library ten times as long."""
    torch.set_num_threads(1)
    spec = argument(torch.empty(600, 600))
    root, plus = (
        bench.measure(Call(name, arguments, {}).key(), CPU).near
        for name, arguments in (("aten.sqrt.default", (spec,)), ("aten.add.Tensor", (spec, spec)))
    )
    assert root < 6 * plus


def test_what_cannot_run_alone_is_said() -> None:
    spec = argument(torch.empty(3, 4))
    for name, said in (("aten.mm.default", "shapes cannot be multiplied"), ("aten.nonsense.default", "no operator")):
        with pytest.raises(bench.MeasurementError, match=said):
            bench.measure(Call(name, (spec, spec), {}).key(), CPU)


def test_calibration_shares_no_operator_of_weight_with_what_is_judged() -> None:
    """Products and convolutions of the same shapes would be looked up, not predicted."""
    heavy = ("matmul", "attention", "recurrent")

    def keys(graph: Graph) -> set[str]:
        return {o.key for o in graph.operators if o.family in heavy or o.family.startswith("conv")}

    mine = set().union(*(keys(trace(one.subject(), TraceOptions("none"))) for one in (*exercises(), *layers())))
    for name in models.FAMILIES:
        for size in (8, 16, 32, 64):
            assert not mine & keys(trace(subject(models.factory(name)(size)))), name


# But for the recurrent library's: its own gradients are laid out otherwise, as said above.
@pytest.mark.parametrize(
    "make", [one for one in exercises(quick=True) if not one.name.startswith("lstm")], ids=lambda one: one.name
)
def test_exercises_are_traced_as_they_run(make: Any) -> None:
    given = make.subject()
    assert [o.key for o in trace(given, TraceOptions(make.optimizer)).operators] == really(given, make.optimizer)


@pytest.fixture(autouse=True)
def _threads() -> Callable[[], None]:
    was = torch.get_num_threads()
    yield
    torch.set_num_threads(was)

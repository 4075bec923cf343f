"""What plans of training change of a model: modules that run again, batches that are added up, layers that are cut."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from deepprophet.device.calibration_models import Repeated
from deepprophet.device.loop import iteration
from deepprophet.errors import TraceError
from deepprophet.graph.graph import Graph
from deepprophet.graph.plans import ModelPlan
from deepprophet.graph.spec import parse
from deepprophet.graph.subject import Subject, subject, total
from deepprophet.graph.trace import TraceOptions, trace
from tests.support.frameworks.running_operators import Recorder, forget

CPU = torch.device("cpu")


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))


def blocks(*, again: bool) -> Subject:
    parts = [Repeated(block()) if again else block() for _ in range(3)]
    return subject((nn.Sequential(nn.Linear(12, 12), *parts), torch.randn(5, 12)))


def names(graph: Graph) -> list[str]:
    return [forget(operator.key) for operator in graph.operators]


def test_modules_that_run_again_are_traced_as_they_run() -> None:
    given = blocks(again=True)
    run = iteration(given, "sgd", CPU)
    run()
    with Recorder() as recorder:
        run()
    graph = trace(given)
    assert names(graph) == list(map(forget, recorder.keys))
    recomputed = [operator for operator in graph.operators if operator.recomputed]
    assert {operator.phase for operator in recomputed} == {"backward"}
    assert {operator.called_in for operator in recomputed} == {"forward"}
    # A module's last product need not run again: nothing of the backward pass reads it.
    products = [operator for operator in recomputed if operator.family == "matmul"]
    assert 3 <= len(products) <= 6
    assert sum(operator.modules for operator in recomputed) >= 3


def test_a_plan_says_the_same_as_a_models_own_code() -> None:
    own, planned = trace(blocks(again=True)), trace(blocks(again=False), TraceOptions(plan=ModelPlan(("[123]",))))
    assert names(planned) == names(own)
    assert [operator.recomputed for operator in planned.operators] == [
        operator.recomputed for operator in own.operators
    ]
    plain = trace(blocks(again=False))
    assert not any(operator.recomputed for operator in plain.operators)
    assert planned.gradient_bytes == plain.gradient_bytes


def test_batches_are_added_up_as_in_training() -> None:
    given = blocks(again=False)
    model, batch = given.model.train(), given.batch
    step = torch.optim.SGD(model.parameters(), lr=0.01)

    def run() -> None:
        model.zero_grad(set_to_none=True)
        for _ in range(2):
            total(model(*batch.arguments), batch, given.loss).backward()
        step.step()

    run()
    with Recorder() as recorder:
        run()
    graph = trace(given, TraceOptions(micro_batches=2))
    assert names(graph) == list(map(forget, recorder.keys))
    assert graph.later > 0
    assert all(p.ready is not None and p.ready >= graph.later for p in graph.parameters)
    assert trace(given, TraceOptions(micro_batches=7)).operators == graph.operators
    assert sum(trace(given, TraceOptions(micro_batches=7)).times()) > sum(graph.times())


def llama() -> Subject:
    config = LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=60, use_cache=False
    )
    tokens = torch.randint(60, (3, 10))
    return subject((LlamaForCausalLM(config), {"input_ids": tokens, "labels": tokens}))


CUT = ModelPlan(
    (), 2, ("model.layers.*.self_attn.[qkv]_proj", "model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"),
    ("model.layers.*.self_attn.o_proj", "model.layers.*.mlp.down_proj"),
)  # fmt: skip


def test_layers_that_are_cut_have_the_operators_of_one_rank() -> None:
    whole, part = trace(llama()), trace(llama(), TraceOptions(plan=CUT))

    def products(graph: Graph) -> float:
        return sum(operator.flops for operator in graph.operators if operator.family == "matmul" and operator.module)

    assert len(part.operators) == len(whole.operators)
    assert 0.45 * products(whole) < products(part) < 0.6 * products(whole)
    sizes = {parameter.name: parameter.bytes for parameter in part.parameters}
    before = {parameter.name: parameter.bytes for parameter in whole.parameters}
    cut = {name for name in sizes if sizes[name] * 2 == before[name]}
    assert len(cut) == 2 * 7
    # The output of attention and of the wide layers forward, and the gradient of each cut layer's input back.
    phases = [part.operators[reduction.place].phase for reduction in part.reductions]
    assert (phases.count("forward"), phases.count("backward")) == (4, 10)
    assert {reduction.bytes for reduction in part.reductions} == {3 * 10 * 32 * 4}
    assert [parse(operator.key).name for operator in whole.operators] == [parse(o.key).name for o in part.operators]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (ModelPlan(("layers.*",)), r"the mapping's checkpoint: no module of the model is named layers.\*; there are 0"),
        (ModelPlan((), 2, (), ("1",)), "its module 1 is a Sequential: only nn.Linear can be cut among ranks"),
        (ModelPlan((), 5, ("0",), ()), "its module 0 has 12 outputs, which cannot be cut among 5 ranks"),
        (ModelPlan((), 2, ("0",), ()), "cannot work on what it is given .* where weights are cut, the model"),
    ],
)  # fmt: skip
def test_plans_that_do_not_fit(plan: ModelPlan, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        trace(blocks(again=False), TraceOptions(plan=plan))

"""What is done about late gradients, against what the hand computes, and against plain steps where none is late."""

from __future__ import annotations

import copy
import re
from itertools import pairwise

import pytest
import torch
from torch import nn

from sasp.core.staleness import PLAIN, StalenessOptions
from sasp.lateness.correction import Correction
from sasp.server.late_chunks import LateChunk, LateGradients, SentContents, Together
from sasp.training.advice import advice
from sasp.training.layer_steps import HalfSteps, LayerSteps
from sasp.training.layers import Layer, find_layers
from sasp.training.own_steps import OwnStepsContents
from sasp.training.server_contents import ServerContents
from sasp.training.transports.transport import Piece


class One(nn.Module):
    """A single number, 1."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))


def one(late: StalenessOptions, momentum: float = 0.0) -> tuple[nn.Parameter, torch.optim.Optimizer, LayerSteps, Layer]:
    model = One()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    (layer,) = find_layers(model, model.parameters())
    return model.weight, optimizer, LayerSteps(optimizer, late, 1, 2), layer


def gradient(iteration: int, value: float) -> list[Piece]:
    """An averaged gradient of one number, and the flag that it was used."""
    return [Piece(iteration, 0, torch.tensor([value, 1.0]))]


def test_momentum_repeats_the_last_update_for_each_iteration_in_flight() -> None:
    weight, optimizer, steps, layer = one(StalenessOptions("momentum"), momentum=0.9)
    steps.note(1, [(layer, 2)])
    steps.look_ahead(layer, range(1, 2))
    assert weight.item() == 1, "there was no update yet"
    steps.absorb(layer, gradient(1, 1.0))
    assert weight.item() == pytest.approx(0.9)
    steps.note(2, [(layer, 2)])
    steps.look_ahead(layer, range(2, 3))
    assert weight.item() == pytest.approx(0.8)
    # Nothing has come, and one more is in flight: ahead of the true parameter, not of what it was ahead.
    optimizer.param_groups[0]["lr"] = 0.05
    steps.note(3, [(layer, 2)])
    steps.look_ahead(layer, range(2, 4))
    assert weight.item() == pytest.approx(0.9 - 0.1 - 0.05), "half the rate, half the update"
    # Iteration 2 was at the rate of 0.1: v = 0.9 * 1 + 2.
    steps.absorb(layer, gradient(2, 2.0))
    assert weight.item() == pytest.approx(0.9 - 0.1 * 2.9)
    steps.look_ahead(layer, range(3, 4))
    assert weight.item() == pytest.approx(0.61 - 0.29 / 2)
    steps.absorb(layer, gradient(3, 0.0))
    assert weight.item() == pytest.approx(0.61 - 0.05 * 0.9 * 2.9)


def test_a_layer_that_is_no_longer_late_forgets_its_last_update() -> None:
    """Else an old update would be repeated when the layer is late again."""
    weight, _, steps, layer = one(StalenessOptions("momentum"))
    for iteration, lead in enumerate((1, 0, 1), 1):
        steps.note(iteration, [(layer, lead)])
        steps.absorb(layer, gradient(iteration, 1.0))
        true = weight.item()
        steps.note(iteration + 1, [(layer, 1)])
        steps.look_ahead(layer, range(iteration + 1, iteration + 2))
        assert weight.item() == pytest.approx(true - 0.1 * lead)


def test_local_takes_the_steps_of_own_gradients_and_takes_them_back() -> None:
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    (layer,) = find_layers(model, model.parameters())
    steps = LayerSteps(optimizer, StalenessOptions("local"), 4, 2)
    flats = [torch.cat([torch.randn(8), torch.ones(2)]) for _ in range(3)]
    own = [torch.cat([torch.randn(8), torch.ones(2)]) for _ in range(3)]
    for iteration, flat in enumerate(own, 1):
        steps.note(iteration)
        steps.own(layer, iteration, flat / 4)
    steps.absorb(layer, [Piece(1, 0, flats[0])])
    twin_model, twin = copy.deepcopy((model, optimizer))
    before = copy.deepcopy(optimizer.state_dict())
    steps.look_ahead(layer, range(2, 4))
    (twin_layer,) = find_layers(twin_model, twin_model.parameters())
    for flat in own[1:]:
        twin_layer.set_gradients(flat)
        twin.step()
    torch.testing.assert_close(layer.flat_parameters(), twin_layer.flat_parameters())
    torch.testing.assert_close(optimizer.state_dict(), before)
    # What follows is as if nothing had been predicted.
    plain_model = copy.deepcopy(twin_model)
    steps.absorb(layer, [Piece(2, 0, flats[1].clone()), Piece(3, 0, flats[2].clone())])
    plain = LayerSteps(torch.optim.Adam(plain_model.parameters(), lr=0.01), PLAIN, 1, 0)
    torch.manual_seed(1)
    plain_model.load_state_dict(nn.Linear(3, 2).state_dict())
    (plain_layer,) = find_layers(plain_model, plain_model.parameters())
    for iteration, flat in enumerate(flats, 1):
        plain.note(iteration)
        plain.absorb(plain_layer, [Piece(iteration, 0, flat)])
    assert torch.equal(layer.flat_parameters(), plain_layer.flat_parameters())


def late_steps(late: StalenessOptions, values: list[float], lead: int) -> list[float]:
    """The parameter before and after each step with gradients that lack ``lead`` iterations."""
    weight, _, steps, layer = one(late)
    found = [weight.item()]
    for iteration, value in enumerate(values, 1):
        steps.note(iteration, [(layer, lead)])
        steps.absorb(layer, gradient(iteration, value))
        found.append(weight.item())
    return found


def test_delay_compensation_is_dc_asgds() -> None:
    values, mean = [1.0, 2.0, 2.0, -3.0], 1.0
    weights = late_steps(StalenessOptions(delay_compensation=0.5), values, 1)
    assert weights[:2] == pytest.approx([1.0, 0.9]), "the first gradient cannot be late"
    for i in (1, 2, 3):
        mean = 0.95 * mean + 0.05 * values[i] ** 2
        compensated = values[i] + 0.5 * values[i] ** 2 / mean**0.5 * (weights[i] - weights[i - 1])
        assert weights[i + 1] == pytest.approx(weights[i] - 0.1 * compensated, rel=1e-5)


def test_gap_aware_rates_divide_the_update_by_the_gap() -> None:
    values, mean = [1.0, 2.0, 3.0, -2.0], 0.01
    weights = late_steps(StalenessOptions(rates="gap"), values, 2)
    for i in (1, 2, 3):
        mean = 0.99 * mean + 0.01 * (0.1 * values[i]) ** 2
        gap = abs(weights[i] - weights[max(0, i - 2)]) / mean**0.5
        assert weights[i + 1] == pytest.approx(weights[i] - 0.1 * values[i] / (1 + gap), rel=1e-5)


def test_staleness_aware_rates_divide_the_learning_rate_by_the_delay() -> None:
    weights = late_steps(StalenessOptions(rates="staleness"), [1.0] * 5, 2)
    steps = [before - after for before, after in pairwise(weights)]
    assert steps == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.05])


def test_what_is_corrected_does_not_depend_on_when_it_comes() -> None:
    """A rank that was flushed takes several steps at once, and must end as the others do."""
    found = []
    for comes in ({4: (1,), 5: (2,), 6: (3,), 7: (4,), 8: (5, 6, 7)}, {4: (1,), 5: (2, 3, 4), 8: (5, 6, 7)}):
        weight, optimizer, steps, layer = one(StalenessOptions("momentum", 0.5, "gap"), momentum=0.9)
        there = 0
        for iteration in range(1, 9):
            pieces = [gradient(i, 0.5 * i)[0] for i in comes.get(iteration, ())]
            if pieces:
                steps.absorb(layer, pieces)
                there = pieces[-1].iteration
            steps.forget(there)
            steps.look_ahead(layer, range(there + 1, iteration))
            optimizer.param_groups[0]["lr"] = 0.1 / iteration
            steps.note(iteration, [(layer, 2)])
        found.append(weight.item())
    assert found[0] == found[1]


def test_halves_make_a_step_of_both_and_an_estimate_of_the_first() -> None:
    model = One()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    (layer,) = find_layers(model, model.parameters())
    steps = HalfSteps(optimizer)
    for iteration in (1, 2, 3, 4):
        steps.note(iteration)
    steps.absorb(layer, gradient(1, 1.0))
    assert model.weight.item() == pytest.approx(0.9), "the estimate"
    steps.absorb(layer, gradient(2, 3.0))
    assert model.weight.item() == pytest.approx(0.8), "the mean is 2, from 1"
    steps.absorb(layer, [*gradient(3, 0.0), *gradient(4, 2.0)])
    assert model.weight.item() == pytest.approx(0.8 - 0.1 * (0.9 * 2 + 1))


ALL = [StalenessOptions("momentum"), StalenessOptions("local"), StalenessOptions("momentum", 2.0, "gap"),
       StalenessOptions("none", 2.0, "staleness")]  # fmt: skip


@pytest.mark.parametrize("late", ALL, ids=str)
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_what_is_not_late_is_stepped_as_ever(kind: type[torch.optim.Optimizer], late: StalenessOptions) -> None:
    found = []
    for options in (PLAIN, late):
        torch.manual_seed(2)
        model = nn.Linear(4, 3)
        steps = LayerSteps(kind(model.parameters(), lr=0.05), options, 2, 1)
        (layer,) = find_layers(model, model.parameters())
        for iteration in range(1, 6):
            steps.look_ahead(layer, range(iteration, iteration))
            flat = torch.cat([torch.randn(15), torch.ones(2)])
            steps.own(layer, iteration, flat / 2)
            steps.note(iteration, [(layer, 0)])
            steps.absorb(layer, [Piece(iteration, 0, flat)])
            steps.forget(iteration)
        found.append(layer.flat_parameters())
    assert torch.equal(*found)


def contents(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers)


def test_a_worker_of_a_server_repeats_the_last_change_of_each_chunk() -> None:
    model = nn.Linear(1, 2, bias=False)
    (layer,) = find_layers(model, model.parameters())
    layer.set_parameters(0, contents(1.0, 1.0))
    rates = iter([0.1, 0.1, 0.1, 0.2])
    server = ServerContents(lambda: next(rates), predicts=True)
    for iteration in (1, 2, 3, 4):
        server.note(iteration)
    server.look_ahead(layer, range(1, 2))
    assert layer.flat_parameters().tolist() == [1.0, 1.0]
    # The first chunk has come twice as far as the second, in two iterations; both lack what follows.
    server.absorb(layer, [Piece(2, 0, contents(0.5)), Piece(1, 1, contents(0.875))])
    assert layer.flat_parameters().tolist() == [0.5, 0.875]
    server.look_ahead(layer, range(2, 4))
    assert layer.flat_parameters().tolist() == pytest.approx([0.5 - 0.25, 0.875 - 2 * 0.125])
    server.look_ahead(layer, range(2, 5))
    assert layer.flat_parameters().tolist() == pytest.approx([0.5 - 0.25 * 3, 0.875 - 0.125 * 4])
    server.absorb(layer, [Piece(4, 1, contents(0.5))])
    assert layer.flat_parameters().tolist() == [0.5, 0.5]
    server.look_ahead(layer, range(3, 5))
    assert layer.flat_parameters().tolist() == pytest.approx([0.5 - 0.25 * 3, 0.5])


def test_a_worker_of_a_server_is_ahead_by_its_own_steps_in_flight() -> None:
    model = nn.Linear(1, 2, bias=False)
    (layer,) = find_layers(model, model.parameters())
    layer.set_parameters(0, contents(1.0, 1.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    server = OwnStepsContents(optimizer, lambda: optimizer.param_groups[0]["lr"], 2)

    def compute(iteration: int, *gradients: float) -> None:
        """An iteration's backward pass, and its end."""
        server.own(layer, iteration, contents(*gradients, 1.0))
        server.note(iteration, [(layer, 2)])

    compute(1, 1.0, 2.0)
    server.look_ahead(layer, range(1, 2))
    assert layer.flat_parameters().tolist() == [1.0, 1.0], "nothing of it has come yet"
    server.absorb(layer, [Piece(1, 0, contents(0.8)), Piece(1, 1, contents(0.7))])
    server.look_ahead(layer, range(2, 2))
    assert layer.flat_parameters().tolist() == pytest.approx([0.8, 0.7]), "nothing is in flight"
    optimizer.param_groups[0]["lr"] = 0.2
    compute(2, 1.0, 1.0)
    optimizer.param_groups[0]["lr"] = 0.0
    server.look_ahead(layer, range(2, 3))
    # The rate is that of the iteration; v = 0.5 * own gradients of the first iteration + those of the second.
    two = contents(0.2 * 1.5, 0.2 * 2.0)
    assert layer.flat_parameters().tolist() == pytest.approx((contents(0.8, 0.7) - two).tolist())
    server.absorb(layer, [Piece(2, 1, contents(0.25))])
    assert layer.flat_parameters().tolist() == pytest.approx([0.8, 0.25]), "the answer is what counts"
    optimizer.param_groups[0]["lr"] = 0.1
    compute(3, 2.0, 4.0)
    server.look_ahead(layer, range(2, 4))
    three = contents(0.1 * (0.75 + 2.0), 0.1 * (1.0 + 4.0))
    expected = contents(0.8 - float(two[0]), 0.25) - three
    assert layer.flat_parameters().tolist() == pytest.approx(expected.tolist()), "each chunk by what it lacks"
    assert not optimizer.state, "the worker's optimiser itself has taken no step"
    # A layer that is not late computes with what has come.
    server.own(layer, 4, contents(9.0, 9.0, 1.0))
    server.note(4, [(layer, 0)])
    server.absorb(layer, [Piece(4, 0, contents(0.5, 0.125))])
    assert layer.flat_parameters().tolist() == [0.5, 0.125]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop])
def test_a_workers_own_step_is_that_of_its_optimiser(kind: type[torch.optim.Optimizer]) -> None:
    models = [nn.Linear(1, 2, bias=False) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    (layer,) = find_layers(models[0], models[0].parameters())
    worker, alone = (kind(model.parameters(), lr=0.1) for model in models)
    server = OwnStepsContents(worker, lambda: 0.1, 1)
    server.note(1, [(layer, 1)])
    server.absorb(layer, [Piece(1, 0, layer.flat_parameters())])
    server.own(layer, 2, contents(1.0, -2.0, 1.0))
    server.note(2, [(layer, 1)])
    server.look_ahead(layer, range(2, 3))
    models[1].weight.grad = contents(1.0, -2.0).reshape(2, 1)
    alone.step()
    assert layer.flat_parameters().tolist() == pytest.approx(models[1].weight.flatten().tolist())


def chunk(late: StalenessOptions) -> LateChunk:
    return LateChunk(torch.ones(1), lambda parameter: torch.optim.SGD([parameter], lr=1.0), late)


def test_a_server_corrects_by_what_it_sent_to_the_worker() -> None:
    late, sent = chunk(StalenessOptions(delay_compensation=0.5, rates="gap")), SentContents()
    sent.note(0, 7, 0, late.copy())
    late.step([LateGradients(contents(1.0), None)], 0.1, 1)
    assert late.parameter.item() == pytest.approx(0.9)
    sent.note(0, 7, 1, late.copy())
    then = sent.used(0, 7, 0)
    assert then is not None
    assert (then.steps, then.parameters.tolist()) == (0, [1.0])
    late.step([LateGradients(contents(2.0), then)], 0.1, 1)
    compensated = 2 + 0.5 * 4 / (0.95 + 0.05 * 4) ** 0.5 * -0.1
    update, squares = 0.1 * compensated, 0.99 * 0.01 + 0.01 * (0.1 * compensated) ** 2
    assert late.parameter.item() == pytest.approx(0.9 - update / (1 + 0.1 / squares**0.5), rel=1e-5)
    assert sent.used(0, 7, 1) is not None
    assert sent.used(0, 7, 0) is None, "a worker never goes back"
    sent.forget(0)
    assert sent.used(0, 7, 1) is None


@pytest.mark.parametrize(
    "late", [StalenessOptions(delay_compensation=2.0, rates="gap"), StalenessOptions(rates="staleness")]
)
def test_a_server_steps_as_ever_with_what_is_not_late(late: StalenessOptions) -> None:
    plain, corrected = chunk(PLAIN), chunk(late)
    for step in range(5):
        for one_chunk, apart in ((plain, False), (corrected, True)):
            together = Together()
            for worker in range(3):
                values = contents(0.3 * step + 0.7 * worker - 1)
                together.add(LateGradients(values, one_chunk.copy()), 0.1, keep_apart=apart)
            one_chunk.step(together.gradients, together.rate, together.workers)
        assert torch.equal(plain.parameter, corrected.parameter)


def test_a_correction_begins_with_its_first_value() -> None:
    correction = Correction(StalenessOptions(delay_compensation=1.0))
    values = contents(3.0)
    correction.compensate(values, contents(2.0), contents(1.0))
    assert values.item() == pytest.approx(3 + 9 / 3, rel=1e-6)
    assert correction.rate_divisor(5) == 1


@pytest.mark.parametrize(
    ("kind", "options", "line"),
    [
        (torch.optim.Adam, {}, "Adam with gradients that may be 1 iteration late may need a lower learning rate"),
        (
            torch.optim.SGD,
            {"momentum": 0.9},
            "SGD with momentum 0.9 .* 1 iteration late: nesterov=True makes up for one",
        ),
        (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, None),
        (torch.optim.SGD, {}, None),
    ],
)
def test_who_trains_with_an_optimiser_that_suffers_is_told(kind, options, line) -> None:
    optimizer = kind([nn.Parameter(torch.zeros(1))], lr=0.1, **options)
    said = advice(optimizer, 1, PLAIN)
    if line is None:
        assert said is None
    else:
        assert said is not None
        assert re.match(line, said)
    assert advice(optimizer, 0, PLAIN) is None
    assert advice(optimizer, 1, StalenessOptions("momentum")) is None

"""Calls that came before are not asked for again, and nobody can tell: neither by a graph nor by what is refused."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from deepprophet.device.calibration_set import exercises
from deepprophet.device.loop import iteration
from deepprophet.graph.graph import Graph
from deepprophet.graph.recording import recorder
from deepprophet.graph.recording.dispatch_cache import Result, overload
from deepprophet.graph.recording.places import part
from deepprophet.graph.subject import Subject, subject
from deepprophet.graph.trace import trace
from tests.support.frameworks.running_operators import forget, really

CPU = torch.device("cpu")
QUICK = {exercise.name: exercise for exercise in exercises(quick=True)}


class Of(nn.Module):
    """A model whose code is a function of a layer's output."""

    def __init__(self, then: Callable[[torch.Tensor], torch.Tensor], width: int = 6) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.then = then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.layer(x)).sum()


def of(then: Callable[[torch.Tensor], torch.Tensor]) -> Subject:
    return subject((Of(then), torch.randn(4, 6)))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that PyTorch was asked for."""
    names: list[str] = []
    real = recorder.Recorder._asked

    def noting(self: Any, func: Any, *rest: Any) -> Any:
        names.append(str(func))
        return real(self, func, *rest)

    monkeypatch.setattr(recorder.Recorder, "_asked", noting)
    return names


def always_asked(given: Subject, monkeypatch: pytest.MonkeyPatch) -> Graph:
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "overload", lambda func: replace(overload(func), repeats=False))
        return trace(given)


@pytest.mark.parametrize("name", QUICK)
def test_a_graph_is_the_same_where_every_call_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = QUICK[name].subject()
    assert trace(given) == always_asked(given, monkeypatch)


def test_a_version_that_makes_tensors_in_another_way_is_asked_for_each(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: Any) -> torch.Tensor:
        raise TypeError("device_for_backend_keys is no argument")

    given = scanned(20)
    graph = trace(given)
    few = len(asked)
    monkeypatch.setattr(Result, "make", odd)
    assert trace(given) == graph
    assert len(asked) - few > len(graph.operators) / 2


def scanned(steps: int) -> Subject:
    def scan(x: torch.Tensor) -> torch.Tensor:
        state = x[:, 0]
        for step in (step % 64 for step in range(steps)):
            state = torch.tanh(state * x[:, step] + x[:, step : step + 1].squeeze(1))
        return state

    return subject((Of(scan, 64), torch.randn(4, 64)))


def test_a_longer_scan_asks_for_nothing_more(asked: list[str]) -> None:
    counts = []
    for steps in (8, 16, 60):
        asked.clear()
        operators = len(trace(scanned(steps)).operators)
        counts.append(len(asked))
    assert counts[0] == counts[1] == counts[2] < 60 < operators


def test_a_scan_is_traced_in_a_small_multiple_of_the_time_that_it_runs() -> None:
    """By the processor's time, of the steps alone. Where each call is asked for it is some ninety times as long."""

    def seconds(what: Callable[[], Any]) -> float:
        spans = []
        for _ in range(4):
            start = time.process_time()
            what()
            spans.append(time.process_time() - start)
        return min(spans)

    few, many = scanned(50), scanned(450)
    traced = seconds(lambda: trace(many)) - seconds(lambda: trace(few))
    runs = seconds(iteration(many, "sgd", CPU)) - seconds(iteration(few, "sgd", CPU))
    assert traced < 45 * runs


def _in_place_views(x: torch.Tensor) -> torch.Tensor:
    parts = []
    for _ in range(2):
        y = x * 2
        y.unsqueeze_(0).transpose_(0, 1)
        parts.append(y + y.squeeze(1).unsqueeze(1))
    return torch.cat(parts)


def _from_the_beginning(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([part.as_strided((2, 2), (1, 1), 3) + part[:2, :2] for part in (x, x[1:], x[2:])])


def _other_types(x: torch.Tensor) -> torch.Tensor:
    whole = x.detach().contiguous()
    return x.sum() + sum(whole[place].view(torch.int32).sum() for place in range(4)).float()


def _written(x: torch.Tensor) -> torch.Tensor:
    first, second = x.detach() + 1, x.detach() + 2
    torch.mul(first, second, out=first)
    third = torch.empty_like(first)
    torch.mul(first, second, out=third)
    first.mul_(first)
    second.mul_(third)
    return (x * first * second * third).relu_()


def _parts(x: torch.Tensor) -> torch.Tensor:
    few = [*x.split(2), *x.chunk(2), x[-2:], x[0:99:3], x[5:2], x[-1:].expand(3, 6)]
    return torch.cat([*few, torch.stack([*x.unbind(1)[:2], x[:, -1], x.select(-1, -2)]).repeat(1, 2)[:, :6]])


def _complex(x: torch.Tensor) -> torch.Tensor:
    turned = torch.fft.rfft(x)
    return turned.conj().imag.neg() + turned.abs() + turned.conj().imag.clone()


def _reset(x: torch.Tensor) -> torch.Tensor:
    kept = x.detach().clone()
    for size in (6, 3, 6):
        kept.data = x.detach()[:, :size].clone()
        x = x + kept.sum(1, keepdim=True)
    return x


def _constants(x: torch.Tensor) -> torch.Tensor:
    two, three = torch.tensor(2) * 2, torch.tensor(3) * 2
    return x.reshape(int(two), int(three)) * torch.tensor(1.5) * torch.tensor(2.5)


def _numbers(x: torch.Tensor) -> torch.Tensor:
    whole = (x > 0).long()
    return x * 1 + x * 1.0 + x * True + x * 0.0 + x * -0.0 + whole * 1 + whole * 1.0 + whole * True


def _inferred(x: torch.Tensor) -> torch.Tensor:
    whole = (x.detach() > 0).long()
    before = whole * 0.5 + whole[0] * 1
    with torch.inference_mode():
        scale = (whole * 0.5).sum() + (whole[0] * 1).sum()
    return x * before.to(x.dtype) + scale.clone()


@pytest.mark.parametrize(
    "then",
    [
        _inferred, _in_place_views, _from_the_beginning, _other_types, _written, _parts, _complex, _reset, _constants,
        _numbers,
        lambda x: nn.functional.dropout(x) + nn.functional.dropout(x, 0.25),
    ],
)  # fmt: skip
def test_calls_that_look_alike_are_told_apart(
    then: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = of(then)
    graph = trace(given)
    assert graph == always_asked(given, monkeypatch)

    def named(keys: list[str]) -> list[str]:
        # The value of a tensor that is known is not asked for.
        return [name for name in map(forget, keys) if not name.startswith("aten._local_scalar_dense")]

    assert named([operator.key for operator in graph.operators]) == named(really(given, "sgd"))


def test_nothing_gets_the_address_that_a_number_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storages are known by their addresses: what is new would be thought to have been touched when the number was."""
    numbers: set[int] = set()
    written: list[dict[int, int]] = []
    real = recorder.Recorder._asked

    def noting(self: Any, *call: Any) -> Any:
        numbers.update(x.untyped_storage()._cdata for x in self.given if type(x) is torch.Tensor)
        written.append(self._made)
        return real(self, *call)

    def scaled(x: torch.Tensor) -> torch.Tensor:
        for _ in range(60):
            x = x * torch.tensor(0.5)
        return x

    monkeypatch.setattr(recorder.Recorder, "_asked", noting)
    trace(of(scaled))
    assert numbers
    assert not numbers & set(written[-1])


def test_parts_of_tensors_begin_where_pytorch_says() -> None:
    drawn = random.Random(31)
    for _ in range(400):
        whole = torch.empty(drawn.randint(1, 5), drawn.randint(1, 5), drawn.randint(1, 5)).transpose(0, 2)
        dimension, start = drawn.randint(-3, 2), drawn.choice([None, drawn.randint(-7, 7)])
        end, step = drawn.choice([None, drawn.randint(-7, 7), 2**63 - 1]), drawn.randint(1, 3)
        given = (whole, dimension, start, end, step)
        piece, told = torch.ops.aten.slice.Tensor(*given), part("aten.slice.Tensor", given)
        assert told is not None
        assert (told.shift, told.arguments[2]) == (piece.storage_offset(), piece.shape[dimension])
        index = drawn.randint(-whole.shape[dimension], whole.shape[dimension] - 1)
        taken, told = whole.select(dimension, index), part("aten.select.int", (whole, dimension, index))
        assert told is not None
        assert told.shift == taken.storage_offset()
    assert part("aten.select.int", (torch.empty(3), 0, 3)) is None
    assert part("aten.select.int", (torch.empty(3), 1, 0)) is None
    assert part("aten.mul.Tensor", (torch.empty(3), 2)) is None


@pytest.mark.parametrize("then", [lambda x: x[:, 7], lambda x: x[:, 0] + x[:, 7]])
def test_a_part_that_is_not_there_is_refused(then: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(Exception, match="index 7"):
        trace(of(then))

"""The optimiser that SaSP gives in the place of the user's: hooks, schedulers and the callback, as with any other."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook

import sasp
from host_reporter.integrations.torch import Watch
from sasp.core.defaults import SCHEME
from sasp.core.staleness import StalenessOptions
from sasp.server.server import Server, listen
from sasp.training import wrapping
from sasp.training.options import AllReduceOptions
from sasp.training.transports.greeting import JoinOptions

STEPS = 4


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """Of a job with one worker."""
    with listen("127.0.0.1", 0, 1) as listener:
        job = Server(listener, 1, SCHEME, token="", patience=20)
        thread = threading.Thread(target=job.run)
        thread.start()
        yield listener.getsockname()
        thread.join(20)
        assert not thread.is_alive()


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, *schedulers: lr_scheduler.LRScheduler) -> list[float]:
    """The learning rates of the steps."""
    rates = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return rates


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_hooks_are_called_once_a_step_wherever_they_were_registered(server: tuple[str, int]) -> None:
    model, inner = made()
    calls: list[str] = []
    inner.register_step_post_hook(lambda *_: calls.append("inner after"))
    mine: list[object] = [inner]
    # The server steps optimisers of its own in this process.
    everywhere = register_optimizer_step_post_hook(
        lambda one, *_: calls.append("all after") if any(one is known for known in mine) else None
    )
    try:
        model, optimizer = sasp.join(model, inner, server=server, rank=0)
        mine.append(optimizer)
        seen: list[object] = []
        optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
        optimizer.register_step_pre_hook(lambda one, *_: seen.append(one))
        after = optimizer.register_step_post_hook(lambda *_: calls.append("after"))
        optimizer.register_state_dict_pre_hook(lambda _: calls.append("state"))
        optimizer.register_load_state_dict_post_hook(lambda _: calls.append("load"))
        with no_warnings():
            train(model, optimizer)
            after.remove()
            train(model, optimizer)
    finally:
        everywhere.remove()
    of_a_step = ["before", "inner after", "after", "all after"]
    assert calls == of_a_step * STEPS + [one for one in of_a_step if one != "after"] * STEPS
    assert set(map(id, seen)) == {id(optimizer)}
    calls.clear()
    optimizer.load_state_dict(optimizer.state_dict())
    assert calls == ["state", "load"]
    optimizer.close()


@pytest.mark.parametrize("before", [True, False])
def test_the_callback_counts_iterations_of_a_job_that_sasp_trains(
    server: tuple[str, int], tmp_path: Path, before: bool
) -> None:
    model, inner = made()
    watch = Watch(inner, "decoupled", directory=tmp_path) if before else None
    model, optimizer = sasp.join(model, inner, server=server, rank=0)
    with watch or Watch(optimizer, "decoupled", directory=tmp_path) as watching:
        train(model, optimizer)
        assert watching.iteration == STEPS
    optimizer.close()


@pytest.mark.parametrize("before", [True, False])
def test_schedulers_work_as_ever_and_warn_of_nothing(server: tuple[str, int], before: bool) -> None:
    def of(optimizer: torch.optim.Optimizer) -> list[lr_scheduler.LRScheduler]:
        return [lr_scheduler.StepLR(optimizer, 2, gamma=0.5), lr_scheduler.LambdaLR(optimizer, lambda i: 1 - 0.1 * i)]

    model, inner = made()
    expected = train(model, inner, *of(inner))
    model, inner = made()
    with no_warnings():
        schedulers = of(inner) if before else []
        model, optimizer = sasp.join(model, inner, server=server, rank=0)
        assert train(model, optimizer, *(schedulers or of(optimizer))) == expected
        optimizer.close()


def test_a_one_cycle_schedule_finds_the_optimisers_defaults(server: tuple[str, int]) -> None:
    model, optimizer = sasp.join(*made(), server=server, rank=0)
    with no_warnings():
        rates = train(model, optimizer, lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=STEPS + 1))
    assert max(rates) == pytest.approx(0.5, rel=0.2)
    optimizer.close()


def test_where_gradients_may_be_late_the_default_is_partial_and_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[object, StalenessOptions, bool]] = []

    def ranks(_model: nn.Module, _inner: object, staleness: int, options: AllReduceOptions) -> None:
        seen.append((staleness, options.late, options.partial))

    def worker(_model: nn.Module, _inner: object, _server: object, who: JoinOptions) -> None:
        seen.append((str(who.scheme), who.late, who.partial))

    monkeypatch.setattr(wrapping, "over_all_reduce", ranks)
    monkeypatch.setattr(wrapping, "over_server", worker)
    local, plain, gap = StalenessOptions("local"), StalenessOptions(), StalenessOptions(rates="gap")
    sasp.wrap(*made())
    sasp.wrap(*made(), staleness=0)
    sasp.wrap(*made(), halves=True)
    sasp.wrap(*made(), rates="gap")
    sasp.wrap(*made(), staleness=2, partial=False)
    where = {"server": ("127.0.0.1", 1), "rank": 0}
    sasp.join(*made(), **where)
    sasp.join(*made(), **where, scheme="bsp+sasp")
    sasp.join(*made(), **where, scheme="ssp:2+sasp")
    sasp.join(*made(), **where, rates="gap")
    sasp.join(*made(), **where, prediction="momentum")
    assert seen == [
        (1, local, True), (0, plain, False), (1, plain, False), (1, gap, False), (2, local, False),
        ("bsp+sasp:1", local, True), ("bsp+sasp", plain, False), ("ssp:2+sasp", plain, False),
        ("bsp+sasp:1", gap, False), ("bsp+sasp:1", StalenessOptions("momentum"), True),
    ]  # fmt: skip

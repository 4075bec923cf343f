"""What other parts of PyTorch do with SaSP: they work as without it, or are refused with what would be right."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn

import sasp
from tests.support.frameworks.sasp_job import joined

STEPS = 6


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Sequential(nn.Linear(16, 8), nn.Tanh()), nn.Linear(8, 4))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, forward: Callable[[torch.Tensor], torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (forward(torch.randn(6, 8, generator=generator)).float() ** 2).mean().backward()
        optimizer.step()


def assert_same(model: nn.Module, expected: nn.Module) -> None:
    for mine, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def plain(forward: Callable[[nn.Module], Callable[[torch.Tensor], torch.Tensor]]) -> nn.Module:
    model, optimizer = made()
    train(model, optimizer, forward(model))
    return model


@pytest.mark.parametrize("when", ["before", "a part before", "after"])
@pytest.mark.parametrize("scheme", ["bsp+sasp", "bsp+overlap"])
def test_compiled_models_train_as_ever(when: str, scheme: str) -> None:
    torch.compiler.reset()
    expected = plain(lambda model: model)
    model, inner = made()
    given = torch.compile(model, backend="aot_eager") if when == "before" else model
    if when == "a part before":
        model[2] = torch.compile(model[2], backend="aot_eager")
    with joined(given, inner, scheme) as (wrapped, optimizer):
        called = torch.compile(wrapped, backend="aot_eager") if when == "after" else wrapped
        train(model, optimizer, called)
        optimizer.flush()
    assert_same(model, expected)


def test_a_compiled_model_waits_for_late_gradients_no_more_than_others() -> None:
    torch.compiler.reset()
    model, inner = made()
    with joined(torch.compile(model, backend="aot_eager"), inner, "bsp+sasp:1") as (wrapped, optimizer):
        train(model, optimizer, wrapped)
        computed, communicated = optimizer.iterations
        assert computed - communicated <= 2
        optimizer.flush()
        assert optimizer.iterations == (STEPS, STEPS)


def cast(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x)

    return forward


def test_autocast_trains_as_ever() -> None:
    expected = plain(cast)
    model, inner = made()
    with joined(model, inner, "bsp+sasp") as (wrapped, optimizer):
        train(model, optimizer, cast(wrapped))
        optimizer.flush()
    assert_same(model, expected)


def test_a_cast_of_old_parameters_is_not_used_again() -> None:
    """One autocast context around all of the training keeps casts, which are of the parameters before."""
    expected = plain(cast)
    model, inner = made()
    with joined(model, inner, "bsp+sasp") as (wrapped, optimizer), torch.autocast("cpu", torch.bfloat16):
        train(model, optimizer, wrapped)
        optimizer.flush()
    assert_same(model, expected)


def test_a_gradient_scaler_is_refused() -> None:
    model, inner = made()
    scaler = torch.amp.GradScaler("cpu")
    with joined(model, inner, "bsp+sasp") as (wrapped, optimizer):
        scaler.scale((wrapped(torch.ones(2, 8)) ** 2).mean()).backward()
        with pytest.raises(sasp.SaspError, match="use autocast with bfloat16, which needs no scaler"):
            scaler.step(optimizer)
        optimizer.step()


@pytest.fixture
def process_group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def sharded() -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 (it takes long to load)
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415 (as above)

    model, _ = made()
    return fully_shard(model, mesh=init_device_mesh("cpu", (1,)))


def compiled_in_place() -> nn.Module:
    model, _ = made()
    model[2].compile(backend="aot_eager")
    return model


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (sharded, "is a DTensor, as fully_shard makes them; each rank needs all parameters here"),
        (compiled_in_place, "2 was compiled in place by compile().*; use model = torch.compile\\(model\\)"),
        (lambda: nn.DataParallel(made()[0]), "wrapped in DataParallel; give the bare model"),
    ],
    ids=["fully_shard", "compile", "DataParallel"],
)
@pytest.mark.usefixtures("process_group")
def test_a_model_that_cannot_be_wrapped_is_refused(make: Callable[[], nn.Module], why: str) -> None:
    model = make()
    with pytest.raises(sasp.SaspError, match=why):
        sasp.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.usefixtures("process_group")
def test_a_model_of_fsdps_first_kind_is_refused() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel  # noqa: PLC0415 (it takes long to load)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FullyShardedDataParallel(made()[0], device_id=torch.device("cpu"))
    with pytest.raises(sasp.SaspError, match="is sharded by FullyShardedDataParallel; each rank needs all parameters"):
        sasp.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.usefixtures("process_group")
def test_an_optimiser_whose_state_is_sharded_is_refused() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: PLC0415 (it takes long to load)

    model, _ = made()
    inner = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with pytest.raises(sasp.SaspError, match="give the optimiser that it was made of"):
        sasp.wrap(model, inner)


def mean_square(model: nn.Module) -> float:
    with torch.no_grad():
        return float((model(torch.ones(2, 8)) ** 2).mean())


@pytest.mark.parametrize("scheme", ["bsp+sasp:1", "asp+sasp:1", "ssp:2+sasp"])
@pytest.mark.parametrize(
    "options",
    [
        {"prediction": "momentum"},
        {"prediction": "local"},
        {"delay_compensation": 2.0},
        {"rates": "gap"},
        {"rates": "staleness"},
        {"partial": True},
        {"partial": True, "prediction": "local"},
    ],
    ids=str,
)
def test_a_servers_worker_trains_with_late_gradients(scheme: str, options: dict[str, object]) -> None:
    model, inner = made()
    first = mean_square(model)
    with joined(model, inner, scheme, **options) as (wrapped, optimizer):
        train(model, optimizer, wrapped)
        train(model, optimizer, wrapped)
    assert mean_square(model) < first


def test_what_is_loaded_into_a_workers_model_would_be_lost_and_is_refused() -> None:
    model, inner = made()
    with joined(model, inner, "bsp+sasp:1") as (wrapped, optimizer):
        train(model, optimizer, wrapped)
        with pytest.raises(sasp.SaspError, match="load it into worker 0's before"):
            wrapped.load_state_dict(wrapped.state_dict())
    model.load_state_dict(model.state_dict())


def test_what_nobody_trains_may_be_loaded_into_a_workers_model() -> None:
    model, inner = made()
    model.add_module("target", nn.Linear(2, 2).requires_grad_(False))
    with joined(model, inner, "bsp+sasp:1") as (wrapped, _):
        wrapped.target.load_state_dict(nn.Linear(2, 2).state_dict())


def test_what_a_server_cannot_do_is_refused() -> None:
    for options, why in (
        ({"prediction": "momentum", "rates": "gap"}, "go only with prediction='none'"),
        ({"partial": True}, "needs a staleness of 1 or more"),
    ):
        model, inner = made()
        with pytest.raises(sasp.SaspError, match=why):
            sasp.join(model, inner, server=("127.0.0.1", 1), rank=0, scheme="bsp+sasp", patience=0.1, **options)

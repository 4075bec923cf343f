"""Models that use parameters in unusual ways, alone with a server: as if they were trained without SaSP."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

import sasp
from sasp.server.server import Server, listen

STEPS = 6


class HeadBeforeEmbedding(nn.Module):
    """Tied weights whose owner, by registration, is called last."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 8, bias=False)
        self.embedding = nn.Linear(8, 8)
        self.embedding.weight = self.head.weight
        self.middle = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.middle(torch.tanh(self.embedding(x)))))


class Checkpointed(nn.Module):
    """A part whose first pass is without gradients, and which is called again for the backward pass."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first = nn.Linear(8, 8)
        self.part = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(checkpoint(self.part, torch.tanh(self.first(x)), use_reentrant=self.reentrant))


class Teacher(nn.Module):
    """Calls a part without gradients before it trains it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            label = self.last(torch.tanh(self.first(x))).softmax(-1)
        return self.last(torch.tanh(self.first(x))) * (1 + label)


class Wasteful(nn.Module):
    """Uses the weights of a part that it never calls, and shares that part with another."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(8, 8)
        self.left = nn.Sequential(nn.Linear(8, 8), self.shared)
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(functional.linear(x, self.shared.weight, self.shared.bias))
        return self.last(torch.tanh(self.left[0](x)))


def normalised(how: Callable[..., nn.Module]) -> nn.Module:
    return nn.Sequential(how(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "tied weights, the owner last": HeadBeforeEmbedding,
    "reentrant checkpoint": lambda: Checkpointed(reentrant=True),
    "checkpoint": lambda: Checkpointed(reentrant=False),
    "without gradients first": Teacher,
    "used and not called": Wasteful,
    "weight norm by a hook": lambda: normalised(weight_norm),
    "spectral norm by a hook": lambda: normalised(spectral_norm),
    "weight norm": lambda: normalised(parametrizations.weight_norm),
}


@contextlib.contextmanager
def joined(
    model: nn.Module, inner: torch.optim.Optimizer, scheme: str
) -> Iterator[tuple[nn.Module, torch.optim.Optimizer]]:
    """The only worker of a server."""
    with listen("127.0.0.1", 0) as listener:
        job = Server(listener, 1, sasp.parse(scheme), token="", patience=20)
        thread = threading.Thread(target=job.run)
        thread.start()
        try:
            model, optimizer = sasp.join(model, inner, server=listener.getsockname(), rank=0, scheme=scheme)
            with optimizer:
                yield model, optimizer
        finally:
            optimizer.close()
            thread.join(20)
        assert not thread.is_alive()


def made(make: Callable[[], nn.Module]) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = make()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    """The losses."""
    generator, losses = torch.Generator().manual_seed(2), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (model(torch.randn(6, 8, generator=generator)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
@pytest.mark.parametrize("scheme", ["bsp+sasp", "bsp+overlap"])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_iteration_sees_what_it_would_see_without(make: Callable[[], nn.Module], scheme: str) -> None:
    plain, inner = made(make)
    expected = train(plain, inner)
    with joined(*made(make), scheme) as (model, optimizer):
        assert train(model, optimizer) == pytest.approx(expected, rel=1e-5)
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_part_that_is_evaluated_or_saved_by_itself_has_all_that_was_computed() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))

    ones = torch.ones(2, 8)
    plain, inner = made(make)
    with joined(*made(make), "asp+sasp:3") as (model, optimizer):
        # One iteration: the second would see the first or not, as time has it.
        for one, steps in ((plain, inner), (model, optimizer)):
            one(ones).sum().backward()
            steps.step()
        with torch.no_grad():
            torch.testing.assert_close(model[0](ones), plain[0](ones))
        torch.testing.assert_close(model[2].state_dict(), plain[2].state_dict())

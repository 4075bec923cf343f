"""Models that use parameters in unusual ways, alone with a server: as if they were trained without SaSP."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

from sasp.core.errors import SaspError
from tests.support.frameworks.sasp_job import joined

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


class Dropped(nn.Module):
    """Leaves a part out of every third pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.part, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.passes = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        x = torch.tanh(self.first(x))
        return self.last(x if self.passes % 3 == 0 else torch.tanh(self.part(x)))


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


@pytest.mark.parametrize("scheme", ["bsp+sasp", "bsp+overlap", "bsp+sasp:1"])
def test_a_part_that_some_passes_leave_out_is_trained_by_the_others(scheme: str) -> None:
    def without_momentum() -> tuple[nn.Module, torch.optim.Optimizer]:
        # With momentum a server, which is sent zeros then, would go on by it.
        model, _ = made(Dropped)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    plain, inner = without_momentum()
    expected = train(plain, inner)
    with joined(*without_momentum(), scheme) as (model, optimizer):
        found = train(model, optimizer)
        assert len(found) == STEPS
        if not optimizer.leads[0]:
            assert found == pytest.approx(expected, rel=1e-5)


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


def test_layers_may_be_set_late_up_to_the_staleness() -> None:
    with joined(*made(lambda: nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))), "bsp+sasp:1") as (model, optimizer):
        train(model, optimizer)
        optimizer.set_leads([1, 0])
        train(model, optimizer)
        assert optimizer.leads == (1, 0)
        with pytest.raises(SaspError, match=r"leads of \[2, 0\]; the staleness lets layers be late by 1 at most"):
            optimizer.set_leads([2, 0])
        train(model, optimizer)

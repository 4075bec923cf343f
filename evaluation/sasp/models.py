"""The training jobs of ``scripts/evaluate sasp``: three families of models on scikit-learn's handwritten digits.

1,797 pictures of 8 x 8 pixels: a real task that comes with a library, and that small models learn in a minute. Their
sizes are chosen for the testbed: hosts share its processors, so sending has to take longer than all their computing.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from evaluation.pytorch.digits import CLASSES, PIXELS, SIDE, Digits
from evaluation.sasp.request import Family

LOOK_EVERY = 2
"""Iterations between two looks at the parameters."""


class Residual(nn.Module):
    """x + two convolutions of it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, channels, 8, 8) both ways."""
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Patches(nn.Module):
    """A small vision Transformer: 16 patches of 2 x 2 pixels, encoded."""

    def __init__(self, width: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.place = nn.Parameter(torch.randn(16, width) / 4)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(16 * width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 64) to (n, 10)."""
        squares = x.view(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        x = self.embed(squares) + self.place
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x).flatten(1))


def make(family: Family, seed: int) -> nn.Module:
    """A model with the first parameters of ``seed``."""
    torch.manual_seed(seed)
    if family == "mlp":
        return nn.Sequential(nn.Linear(PIXELS, 256), nn.ReLU(), nn.Linear(256, 96), nn.ReLU(), nn.Linear(96, CLASSES))
    if family == "cnn":
        return nn.Sequential(
            nn.Unflatten(1, (1, SIDE, SIDE)),
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), Residual(24), Residual(24), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(24 * 16, 64), nn.ReLU(), nn.Linear(64, CLASSES),
        )  # fmt: skip
    return Patches()


def optimizer(parameters: Iterable[nn.Parameter], learning_rate: float) -> torch.optim.Optimizer:
    """The jobs'. Adam bears late gradients at rates at which SGD with momentum forgets what it knew."""
    return torch.optim.Adam(parameters, lr=learning_rate)


def draws(seed: int, rank: int) -> torch.Generator:
    """Where a worker's batches come from."""
    return torch.Generator().manual_seed(1000 * seed + rank)


def loss(model: nn.Module, data: Digits, batch: int, draw: torch.Generator) -> torch.Tensor:
    """Of the next batch."""
    chosen = torch.randint(0, len(data.labels), (batch,), generator=draw)
    return nn.functional.cross_entropy(model(data.pictures[chosen]), data.labels[chosen])


def gradients(model: nn.Module, data: Digits, batch: int, draw: torch.Generator) -> list[torch.Tensor]:
    """Of the next batch's loss, a parameter each."""
    return list(torch.autograd.grad(loss(model, data, batch, draw), list(model.parameters())))

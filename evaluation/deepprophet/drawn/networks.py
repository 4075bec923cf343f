"""Networks drawn layer by layer from PyTorch's own, by a seed: they classify pictures, words or numbers.

Needs PyTorch.
``evaluation.deepprophet.drawn.networks:seed_31_4`` is a factory, as ``trainyard predict`` takes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from evaluation.deepprophet.drawn.rule import random_of

WIDTHS = (32, 48, 64, 96, 128, 192, 256)
CLASSES = 20
_BENDS: tuple[Callable[[], nn.Module], ...] = (nn.ReLU, nn.GELU, nn.SiLU, nn.ELU, nn.Hardswish, nn.Mish)


class Added(nn.Module):
    """A module whose output is added to its input."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the sum."""
        return x + self.module(x)


class First(nn.Module):
    """A recurrent layer whose states are of no interest."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the output of each step."""
        return self.module(x)[0]


class Mixed(nn.Module):
    """Attention of a series to itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns what each step sees of all."""
        return self.attention(x, x, x, need_weights=False)[0]


class Turned(nn.Module):
    """A module over the second dimension of a series instead of the last."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the output of the module, turned back."""
        return self.module(x.transpose(1, 2)).transpose(1, 2)


class Mean(nn.Module):
    """The mean over the steps of a series."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the mean."""
        return x.mean(1)


def _picture_block(draw: random.Random, before: int, after: int) -> nn.Module:
    bend, stride, kernel = draw.choice(_BENDS), draw.choice((1, 2)), draw.choice((3, 3, 5))
    kind = draw.choice(("plain", "grouped", "separable", "dilated"))
    gap = 2 if kind == "dilated" else 1
    groups = {"plain": 1, "dilated": 1, "grouped": 8, "separable": before}[kind]
    wide = before if kind == "separable" else after
    layers: list[nn.Module] = [
        nn.Conv2d(before, wide, kernel, stride, gap * (kernel // 2), gap, groups, bias=False),
        nn.BatchNorm2d(wide),
        bend(),
    ]
    if kind == "separable":
        layers += [nn.Conv2d(wide, after, 1, bias=False), nn.BatchNorm2d(after)]
    inner = nn.Sequential(
        nn.Conv2d(after, after, 3, padding=1), draw.choice((nn.BatchNorm2d, _group_norm))(after), bend()
    )
    return nn.Sequential(*layers, Added(inner))


def _group_norm(width: int) -> nn.Module:
    return nn.GroupNorm(8, width)


def _pictures(draw: random.Random, count: int) -> tuple[nn.Module, torch.Tensor]:
    side, widths = draw.choice((32, 48, 64, 96)), [draw.choice(WIDTHS) for _ in range(draw.randint(2, 5))]
    blocks: list[nn.Module] = [nn.Conv2d(3, widths[0], 3, padding=1)]
    for before, after in zip([widths[0], *widths], widths, strict=False):
        blocks.append(_picture_block(draw, before, after))
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(widths[-1], CLASSES))
    return nn.Sequential(*blocks, *head), torch.randn(count, 3, side, side)


def _series_block(draw: random.Random, width: int) -> nn.Module:
    bend = draw.choice(_BENDS)
    gap = draw.choice((1, 2, 4))
    blocks: tuple[Callable[[], nn.Module], ...] = (
        lambda: Mixed(width, draw.choice((2, 4))),
        lambda: First(draw.choice((nn.GRU, nn.LSTM))(width, width, batch_first=True)),
        lambda: nn.Sequential(nn.Linear(width, 4 * width), bend(), nn.Linear(4 * width, width)),
        lambda: Turned(nn.Conv1d(width, width, 3, padding=gap, dilation=gap)),
        lambda: Turned(nn.Conv1d(width, width, 5, padding=2, groups=width)),
    )
    return nn.Sequential(Added(draw.choice(blocks)()), nn.LayerNorm(width))


def _words(draw: random.Random, count: int) -> tuple[nn.Module, torch.Tensor]:
    words, width, length = draw.choice((2000, 8000)), draw.choice(WIDTHS[1:]), draw.choice((24, 48, 96))
    blocks = [_series_block(draw, width) for _ in range(draw.randint(2, 6))]
    model = nn.Sequential(nn.Embedding(words, width), *blocks, Mean(), nn.Linear(width, CLASSES))
    return model, torch.randint(words, (count, length))


def _numbers(draw: random.Random, count: int) -> tuple[nn.Module, torch.Tensor]:
    given, width = draw.choice((40, 120, 400)), draw.choice((128, 256, 512, 1024))
    layers: list[nn.Module] = [nn.Linear(given, width)]
    for _ in range(draw.randint(1, 6)):
        norm = draw.choice((nn.BatchNorm1d, nn.LayerNorm))
        layers.append(
            Added(nn.Sequential(nn.Linear(width, width), norm(width), draw.choice(_BENDS)(), nn.Dropout(0.1)))
        )
    return nn.Sequential(*layers, nn.Linear(width, CLASSES)), torch.randn(count, given)


_KINDS = (_pictures, _words, _numbers)


def factory(seed: int, number: int) -> Callable[..., Any]:
    """Returns the factory of a network: the same seed and number are the same network."""

    def make(batch_size: int = 8) -> Any:
        draw = random_of(seed, "network", number)
        model, given = _KINDS[number % len(_KINDS)](draw, batch_size)
        labels = torch.randint(CLASSES, (given.shape[0],))
        return model, (given, labels), lambda output, batch: functional.cross_entropy(output, batch[1])

    return make


def __getattr__(name: str) -> Callable[..., Any]:
    """Returns the factory of ``seed_SEED_NUMBER``. Raises AttributeError."""
    word, _, rest = name.partition("_")
    seed, _, number = rest.partition("_")
    if word != "seed" or not (seed.isdigit() and number.isdigit()):
        raise AttributeError(f"no network {name}; they are called seed_31_0")
    return factory(int(seed), int(number))

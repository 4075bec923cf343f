"""The trainings of the study: three families of real models on data that libraries bring. Needs PyTorch.

Each takes 1,000 to 1,500 iterations to learn, and a few milliseconds of one processor for an iteration of a worker. A
metric is higher where the model is better.
"""

from __future__ import annotations

import math
import pydoc_data.topics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits, load_sample_image
from torch import nn
from torch.nn import functional

from evaluation.sasp.study.residual import Residual

Metric = Callable[[nn.Module], float]

WARM_UP = 50
"""The learning rate grows to its full size in so many iterations."""


class Batch(NamedTuple):
    """What a model is given, and what it should answer."""

    inputs: torch.Tensor
    wanted: torch.Tensor


class Data(NamedTuple):
    """All that one seed trains and is measured on."""

    batches: Iterator[Batch]
    metric: Metric


@dataclass(frozen=True, slots=True)
class Task:
    """A family: how its model, its data and its loss are made.

    ``rate``: the middle of the learning rates that are tried, by optimiser; ``data``: by seed, worker and workers.
    """

    name: str
    iterations: int
    optimizer: str
    rate: dict[str, float]
    model: Callable[[], nn.Module]
    data: Callable[[int, int, int], Data]
    loss: Callable[[nn.Module, Batch], torch.Tensor]

    def seeded_model(self, seed: int) -> nn.Module:
        """The model with the first parameters of ``seed``."""
        torch.manual_seed(seed)
        return self.model()


def make_optimizer(name: str, model: nn.Module, rate: float) -> torch.optim.Optimizer:
    """The optimiser of a worker: adamw, sgd (with momentum) or nesterov."""
    if name == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=name == "nesterov")


# Which of two digits is greater ------------------------------------------------------------------------------------


def _comparer() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 16, 3, padding=1), nn.ReLU(), Residual(16), nn.AvgPool2d(2), Residual(16), nn.Flatten(),
        nn.Linear(16 * 16, 64), nn.ReLU(), nn.Linear(64, 2),
    )  # fmt: skip


@cache
def _pictures() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    return torch.tensor(data.images, dtype=torch.float32) / 16, torch.tensor(data.target)


def _pairs(chosen: torch.Tensor, count: int, draw: torch.Generator) -> Batch:
    """Pairs of pictures of different digits, and whether the first is the greater."""
    pictures, labels = _pictures()
    picks = chosen[torch.randint(len(chosen), (2, 4 * count), generator=draw)]
    picks = picks[:, labels[picks[0]] != labels[picks[1]]][:, :count]
    return Batch(torch.stack([pictures[picks[0]], pictures[picks[1]]], 1), (labels[picks[0]] > labels[picks[1]]).long())


def _digit_pairs(seed: int, worker: int, workers: int) -> Data:
    order = torch.randperm(len(_pictures()[1]), generator=torch.Generator().manual_seed(seed))
    held, mine = order[:397], order[397:][worker::workers]
    tested = _pairs(held, 500, torch.Generator().manual_seed(seed))
    draw = _drawn(seed, worker)
    return Data(iter(lambda: _pairs(mine, 32, draw), None), lambda model: _accuracy(model, tested))


def _accuracy(model: nn.Module, tested: Batch) -> float:
    return float((model(tested.inputs).argmax(1) == tested.wanted).float().mean())


# The next letter ---------------------------------------------------------------------------------------------------

CONTEXT = 32


class Letters(nn.Module):
    """A Transformer that names each next letter of a text: (n, length) to (n, letters, length)."""

    def __init__(self, letters: int, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.place = nn.Parameter(torch.randn(CONTEXT, width) / 8)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, letters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Letters as numbers."""
        x = self.embed(x) + self.place
        for block in self.blocks:
            x = block(x, src_mask=self.mask, is_causal=True)
        return self.out(self.norm(x)).transpose(1, 2)


@cache
def _text() -> tuple[torch.Tensor, int]:
    """Python's help topics, as numbers of letters, and how many letters there are."""
    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    letters = sorted(set(text))
    numbers = {letter: number for number, letter in enumerate(letters)}
    return torch.tensor([numbers[letter] for letter in text]), len(letters)


def _passages(text: torch.Tensor, starts: torch.Tensor) -> Batch:
    rows = text[starts[:, None] + torch.arange(CONTEXT + 1)]
    return Batch(rows[:, :-1], rows[:, 1:])


def _help_topics(seed: int, worker: int, workers: int) -> Data:
    text, _letters = _text()
    held = len(text) // 10
    share = (len(text) - held) // workers
    mine, tested_text = text[worker * share :][:share], text[-held:]
    tested = _passages(tested_text, torch.linspace(0, held - CONTEXT - 2, 64).long())
    draw = _drawn(seed, worker)

    def batch() -> Batch:
        return _passages(mine, torch.randint(share - CONTEXT - 1, (8,), generator=draw))

    return Data(iter(batch, None), lambda model: -float(functional.cross_entropy(model(tested.inputs), tested.wanted)))


# The colours of a photograph ---------------------------------------------------------------------------------------

FREQUENCIES = 64


class Painter(nn.Module):
    """Names the colour at each place of a photograph: places (n, 2) in 0..1 to colours (n, 3).

    [known] Sines of random directions let a plain network learn fine detail: M. Tancik et al., Fourier features let
    networks learn high frequency functions in low dimensional domains, NeurIPS 2020, arXiv 2006.10739.
    """

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.register_buffer("directions", 2 * math.pi * 6 * torch.randn(2, FREQUENCIES))
        self.layers = nn.Sequential(
            nn.Linear(2 * FREQUENCIES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Colours in -0.5..0.5."""
        angles = x @ self.directions
        painted: torch.Tensor = self.layers(torch.cat([angles.sin(), angles.cos()], 1))
        return painted


@cache
def _pixels() -> Batch:
    """The places and colours of scikit-learn's photograph of a flower."""
    photo = torch.tensor(load_sample_image("flower.jpg")).float() / 255 - 0.5
    places = torch.cartesian_prod(*(torch.arange(side) / side for side in photo.shape[:2]))
    return Batch(places, photo.reshape(-1, 3))


def _photo_pixels(seed: int, worker: int, workers: int) -> Data:
    places, colours = _pixels()
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))
    held, mine = order[:4000], order[4000:][worker::workers]
    tested, draw = Batch(places[held], colours[held]), _drawn(seed, worker)

    def batch() -> Batch:
        picks = mine[torch.randint(len(mine), (128,), generator=draw)]
        return Batch(places[picks], colours[picks])

    return Data(iter(batch, None), lambda model: _decibels(model, tested))


def _decibels(model: nn.Module, tested: Batch) -> float:
    """The peak signal-to-noise ratio."""
    return float(-10 * functional.mse_loss(model(tested.inputs), tested.wanted).log10())


def _drawn(seed: int, worker: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 * seed + worker)


def _cross_entropy(model: nn.Module, batch: Batch) -> torch.Tensor:
    return functional.cross_entropy(model(batch.inputs), batch.wanted)


def _squares(model: nn.Module, batch: Batch) -> torch.Tensor:
    return functional.mse_loss(model(batch.inputs), batch.wanted)


TASKS: dict[str, Task] = {
    "cnn": Task(
        "cnn", 1000, "nesterov", {"nesterov": 0.03, "sgd": 0.03, "adamw": 1e-3},
        _comparer, _digit_pairs, _cross_entropy,
    ),
    "transformer": Task(
        "transformer", 1200, "adamw", {"adamw": 3e-3, "nesterov": 0.1, "sgd": 0.1},
        lambda: Letters(_text()[1]), _help_topics, _cross_entropy,
    ),
    "mlp": Task(
        "mlp", 1500, "adamw", {"adamw": 2e-3, "nesterov": 0.1, "sgd": 0.1},
        Painter, _photo_pixels, _squares,
    ),
}  # fmt: skip

"""Single layers in many sizes: what a device's rooflines are fitted to, beside the models of the calibration set.

Each is traced, forward and backward, and its operators are measured alone; none is run as a whole. Sizes are drawn by a
fixed seed between those of small and of large models, so that each dimension is long and short beside each other one.
No model that DeepProphet is judged on has a layer of these sizes. Needs PyTorch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepprophet.device.calibration_models import HAS_EXPERTS
from deepprophet.device.calibration_set import Exercise

SEED = 11
WIDTHS = (
    12, 20, 24, 44, 48, 72, 80, 96, 104, 144, 160, 176, 208, 240, 320, 336, 400, 448, 560, 640, 720, 880, 1120, 1440,
    1760, 2008, 2240, 2880,
)  # fmt: skip
"""Most fill a processor's blocks of channels, as most models' do, and some do not."""

SIDES = (5, 6, 9, 11, 13, 18, 22, 26, 36, 44, 54, 72, 90, 110)
COUNTS = (2, 3, 5, 6, 10, 12, 20, 24, 40, 48, 72, 120)
SERIES = (90, 180, 360, 720, 1400, 2800)
LENGTHS = (10, 18, 30, 44, 72, 100, 150)

_MIN_FLOPS, _MAX_FLOPS = 1e6, 2.5e9
_MAX_BYTES = 48 * 2**20
"""Of a layer's input and output: the largest of one kind takes milliseconds, all together minutes."""


class _Layer(nn.Module):
    """A function of a first tensor that gets a gradient, as it does amid a model."""

    def __init__(self, run: Callable[..., torch.Tensor], width: tuple[int, ...] | None, *layers: nn.Module) -> None:
        super().__init__()
        self.run = run
        self.layers = nn.ModuleList(layers)
        self.scale = nn.Parameter(torch.ones(width)) if width is not None else None

    def forward(self, given: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        """The output, as one number."""
        first = given if self.scale is None else given * self.scale
        output: torch.Tensor = self.run(*self.layers, first, *more)
        # Of a square, for then the gradient that comes back is as dense as amid a model.
        return (output * output).mean() if output.dim() else output


def layers(*, quick: bool = False) -> Iterator[Exercise]:
    """The layers; quick: a few of each kind."""
    draw = random.Random(SEED)  # noqa: S311 - no secret hangs on it
    for kind, (make, count) in _KINDS.items():
        for number in range(max(count // 16, 1) if quick else count):
            yield Exercise(f"{kind} {number}", make(draw), "none")


def _fits(flops: float, elements: float) -> bool:
    return _MIN_FLOPS <= flops <= _MAX_FLOPS and 4 * elements <= _MAX_BYTES


def _drawn(draw: random.Random, fits: Callable[..., bool], *choices: tuple[int, ...]) -> tuple[int, ...]:
    while True:
        sizes = tuple(draw.choice(choice) for choice in choices)
        if fits(*sizes):
            return sizes


def _dense(draw: random.Random) -> Callable[[], Any]:
    rows, into, out = _drawn(
        draw, lambda n, i, o: _fits(2 * n * i * o, n * (i + o) + i * o), (*COUNTS, 200, 480, 1000, 2200), WIDTHS, WIDTHS
    )
    return lambda: (_Layer(lambda layer, x: layer(x), (into,), nn.Linear(into, out)), torch.randn(rows, into))


def _convolution(kernel: int, stride: int, *, into: tuple[int, ...] = WIDTHS) -> Any:
    def made(draw: random.Random) -> Callable[[], Any]:
        def fits(count: int, side: int, few: int, many: int) -> bool:
            if side < kernel:
                return False
            places = count * (side // stride) ** 2
            window = kernel * kernel * few
            return _fits(2.0 * places * window * many, count * side * side * few + places * many)

        count, side, few, many = _drawn(draw, fits, COUNTS, SIDES, into, WIDTHS)
        layer = nn.Conv2d(few, many, kernel, stride, kernel // 2, bias=draw.random() < 0.5)
        shape = (count, few, side, side)
        # A picture itself gets no gradient.
        scale = None if few == 3 else (few, 1, 1)
        return lambda: (_Layer(lambda layer, x: layer(x), scale, layer), torch.randn(shape))

    return made


def _depthwise(kernel: int, stride: int) -> Any:
    """A filter for each channel: what such a layer takes hangs on its pictures, not on a product."""

    def made(draw: random.Random) -> Callable[[], Any]:
        count, side, width = _drawn(
            draw, lambda n, s, w: s >= kernel and 1e5 <= n * s * s * w <= 3e6, COUNTS, SIDES, WIDTHS
        )
        layer = nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width, bias=False)
        return lambda: (_Layer(lambda part, x: part(x), (width, 1, 1), layer), torch.randn(count, width, side, side))

    return made


def _series(kernel: int, *, gaps: bool = False) -> Any:
    """A convolution over one dimension; ``gaps``: with windows that have some."""

    def made(draw: random.Random) -> Callable[[], Any]:
        def fits(count: int, length: int, few: int, many: int) -> bool:
            return _fits(2.0 * count * length * kernel * few * many, count * length * (few + many))

        count, length, few, many = _drawn(draw, fits, COUNTS[:8], SERIES, WIDTHS[:20], WIDTHS[:20])
        gap = draw.choice((2, 4, 8, 16)) if gaps else 1
        layer = nn.Conv1d(few, many, kernel, padding=gap * (kernel // 2), dilation=gap)
        return lambda: (_Layer(lambda part, x: part(x), (few, 1), layer), torch.randn(count, few, length))

    return made


def _spread(draw: random.Random) -> Callable[[], Any]:
    """A convolution the other way, which makes pictures larger."""

    def fits(count: int, side: int, few: int, many: int) -> bool:
        return _fits(2.0 * count * side * side * 4 * few * many, count * side * side * (few + 4 * many))

    count, side, few, many = _drawn(draw, fits, COUNTS, SIDES[:10], WIDTHS, WIDTHS)
    layer = nn.ConvTranspose2d(few, many, 2, 2)
    return lambda: (_Layer(lambda part, x: part(x), (few, 1, 1), layer), torch.randn(count, few, side, side))


def _experts(draw: random.Random) -> Callable[[], Any]:
    """A product in groups of rows, all of which are as large."""
    rows, width, inner, groups = _drawn(
        draw, lambda n, w, i, g: n >= 2 * g and _fits(2.0 * n * w * i, n * (w + i) + g * w * i),
        (24, 72, 120, 200, 480, 1000, 2200), WIDTHS[4:22], WIDTHS[4:22], (3, 4, 6, 12, 20),
    )  # fmt: skip
    ends = (torch.arange(1, groups + 1) * rows // groups).int()
    weights = torch.randn(groups, width, inner)

    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(weights)

        def forward(self, x: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
            return functional.grouped_mm(x, self.weights, offs=given)

    return lambda: (
        _Layer(lambda part, x, given: part(x, given), (width,), Grouped()),
        (torch.randn(rows, width), ends),
    )


def _pictures(draw: random.Random) -> Callable[[], Any]:
    count, side, width = _drawn(
        draw, lambda n, s, w: 2e4 <= n * s * s * w <= 2e6, COUNTS, tuple(s for s in SIDES if s % 2 == 0), WIDTHS
    )

    def run(norm: nn.Module, pool: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return pool(torch.relu(norm(x) + x))

    pool = nn.MaxPool2d(2) if draw.random() < 0.5 else nn.AvgPool2d(2)
    shape = (count, width, side, side)
    return lambda: (_Layer(run, (width, 1, 1), nn.BatchNorm2d(width), pool), torch.randn(shape))


def _rows(draw: random.Random) -> Callable[[], Any]:
    count, length, width = _drawn(draw, lambda n, t, w: 2e4 <= n * t * w <= 2e6, COUNTS, LENGTHS, WIDTHS)

    def run(norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(functional.gelu(norm(x)), 0.1) + x

    return lambda: (_Layer(run, (width,), nn.LayerNorm(width)), torch.randn(count, length, width))


def _attention(draw: random.Random) -> Callable[[], Any]:
    def fits(count: int, heads: int, length: int, width: int) -> bool:
        each = count * heads * length
        return _fits(4.0 * each * length * width, each * (3 * width + length))

    count, heads, length, width = _drawn(draw, fits, COUNTS[:8], (1, 3, 5, 6, 10), LENGTHS, (12, 20, 28, 36, 44, 72))
    plain = draw.random() < 0.5

    def run(x: torch.Tensor) -> torch.Tensor:
        query, key, value = x.unbind(0)
        if plain:
            return torch.softmax(query @ key.transpose(-2, -1) / width**0.5, -1) @ value
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    return lambda: (_Layer(run, (width,)), torch.randn(3, count, heads, length, width))


def _recurrent(draw: random.Random) -> Callable[[], Any]:
    def fits(count: int, length: int, width: int) -> bool:
        return _fits(16.0 * count * length * width * width, 8 * width * width + 8 * count * length * width)

    count, length, width = _drawn(draw, fits, COUNTS, LENGTHS, WIDTHS)
    core = draw.choice((nn.LSTM, nn.LSTM, nn.LSTM, nn.GRU, nn.RNN))
    return lambda: (
        _Layer(lambda layer, x: layer(x)[0], (width,), core(width, width, batch_first=True)),
        torch.randn(count, length, width),
    )


def _words(draw: random.Random) -> Callable[[], Any]:
    count, length, width, words = _drawn(
        draw, lambda n, t, w, v: 4e3 <= n * t * w <= 5e5 and v * w <= 4e6 and n * t * v <= 4e6,
        COUNTS, LENGTHS, WIDTHS[:14], (700, 1900, 5200, 14000),
    )  # fmt: skip

    def run(table: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        vectors = table(tokens).flatten(0, -2)
        # Of as many classes as there are words, but without the product, which others measure.
        scores = vectors.repeat(1, math.ceil(words / width))[:, :words]
        return functional.cross_entropy(scores, tokens.flatten())

    return lambda: (_Layer(run, None, nn.Embedding(words, width)), torch.randint(words, (count, length)))


_KINDS: dict[str, tuple[Callable[[random.Random], Callable[[], Any]], int]] = {
    "dense": (_dense, 48),
    "point": (_convolution(1, 1), 30),
    "spatial": (_convolution(3, 1), 26),
    "spatial by two": (_convolution(3, 2), 12),
    "point by two": (_convolution(1, 2), 10),
    "wide window": (_convolution(5, 1), 4),
    "of a picture": (_convolution(7, 2, into=(3,)), 4),
    "grouped": (_depthwise(3, 1), 12),
    "grouped by two": (_depthwise(3, 2), 6),
    "grouped wide": (_depthwise(5, 1), 6),
    "grouped widest": (_depthwise(7, 1), 4),
    "series": (_series(3), 8),
    "series with gaps": (_series(3, gaps=True), 10),
    "spread": (_spread, 6),
    "pictures": (_pictures, 10),
    "rows": (_rows, 10),
    "attention": (_attention, 14),
    "recurrent": (_recurrent, 12),
    "words": (_words, 8),
    **({"experts": (_experts, 8)} if HAS_EXPERTS else {}),
}
"""How a layer of a kind is drawn, and how many."""

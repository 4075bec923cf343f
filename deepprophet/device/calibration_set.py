"""What a device is calibrated with: small models of its own in several sizes. Needs PyTorch.

Their operators give the table and the roofline; whole iterations of them say what operators cost in an iteration beyond
what they cost alone. No model that DeepProphet is judged on is here, and no width, length or picture of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepprophet.device.calibration_models import HAS_EXPERTS, Dilated, Experts, Repeated, Scan, Steps, separable
from deepprophet.graph.subject import Subject, subject


@dataclass(frozen=True)
class Exercise:
    """A model of the calibration set: its name, which begins with its kind, and how it is made."""

    name: str
    make: Callable[[], Any]
    optimizer: str = "sgd"

    @property
    def kind(self) -> str:
        """What it has in common with others of the set."""
        return self.name.partition("-")[0]

    def subject(self) -> Subject:
        """The model with its batch and its loss."""
        return subject(self.make(), self.name)


class _Net(nn.Module):
    """A model from a function, with its layers named for it."""

    def __init__(self, run: Callable[..., torch.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(layers)
        self.run = run

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        """The output for all of a batch but its labels."""
        return self.run(self.layers, *batch[:-1])


def _entropy(output: torch.Tensor, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return functional.cross_entropy(output.flatten(0, -2), batch[-1].flatten())


def _dense(width: int, depth: int, count: int) -> Any:
    layers: list[nn.Module] = [nn.Linear(200, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    body = nn.Sequential(*layers, nn.Linear(width, 30))
    run = _Net(lambda part, x: part["body"](x), body=body)
    return run, (torch.randn(count, 200), torch.randint(30, (count,))), _entropy


def _plain(channels: int, side: int, count: int) -> Any:
    body = nn.Sequential(
        nn.Conv2d(3, channels, 5, 2, 2), nn.ReLU(inplace=True), nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(2 * channels, 2 * channels, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(), nn.Linear(2 * channels * (side // 8) ** 2, 176), nn.ReLU(), nn.Linear(176, 30),
    )  # fmt: skip
    return _Net(lambda part, x: part["body"](x), body=body), _pictures(count, side), _entropy


def _residual(channels: int, side: int, count: int, depth: int, *, grouped: bool = False) -> Any:
    wide = 2 * channels if grouped else channels

    def block() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, 3, padding=1, bias=False, groups=wide if grouped else 1), nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True), nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def run(part: Any, x: torch.Tensor) -> torch.Tensor:
        x = part["stem"](x)
        for block in part["blocks"]:
            x = functional.relu(x + block(x), inplace=True)
        return part["head"](part["norm"](x).mean((2, 3)))

    net = _Net(
        run,
        stem=nn.Sequential(nn.Conv2d(3, channels, 5, 2, 2, bias=False), nn.AvgPool2d(2)),
        blocks=nn.ModuleList([block() for _ in range(depth)]),
        norm=nn.BatchNorm2d(channels),
        head=nn.Linear(channels, 30),
    )
    return net, _pictures(count, side), _entropy


def _recurrent(kind: str, width: int, length: int, count: int) -> Any:
    cores = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}

    def run(part: Any, tokens: torch.Tensor) -> torch.Tensor:
        return part["out"](part["core"](part["words"](tokens))[0])

    net = _Net(run, words=nn.Embedding(1500, width), core=cores[kind](width, width, batch_first=True),
               out=nn.Linear(width, 900))  # fmt: skip
    return net, (torch.randint(1500, (count, length)), torch.randint(900, (count, length))), _entropy


def _attention(width: int, heads: int, length: int, count: int, depth: int, *, causal: bool) -> Any:
    def attend(part: Any, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            p.view(*x.shape[:2], heads, width // heads).transpose(1, 2) for p in part["inward"](x).chunk(3, -1)
        )
        if causal:
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            weights = functional.dropout(torch.softmax(query @ key.transpose(-2, -1) / heads**0.5, -1), 0.1)
            seen = weights @ value
        return part["outward"](seen.transpose(1, 2).reshape(x.shape))

    def run(part: Any, tokens: torch.Tensor) -> torch.Tensor:
        x = part["words"](tokens)
        for block in part["blocks"]:
            x = block["first"](x + attend(block, x))
            x = block["second"](x + functional.dropout(block["wide"](x), 0.1))
        return part["out"](x)

    def block() -> nn.Module:
        wide = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
        return nn.ModuleDict(
            {"first": nn.LayerNorm(width), "second": nn.LayerNorm(width), "wide": wide,
             "inward": nn.Linear(width, 3 * width), "outward": nn.Linear(width, width)}
        )  # fmt: skip

    net = _Net(run, words=nn.Embedding(1500, width), blocks=nn.ModuleList([block() for _ in range(depth)]),
               out=nn.Linear(width, 900))  # fmt: skip
    return net, (torch.randint(1500, (count, length)), torch.randint(900, (count, length))), _entropy


def _tables(tables: int, rows: int, width: int, count: int, *, bags: bool) -> Any:
    def run(part: Any, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        vectors = [table(sparse[:, number]) for number, table in enumerate(part["tables"])]
        stacked = torch.stack([part["bottom"](dense), *vectors], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        return part["top"](torch.cat([products, *vectors], 1)).squeeze(1)

    kind: Callable[[], nn.Module] = (
        (lambda: nn.EmbeddingBag(rows, width, mode="sum")) if bags else (lambda: nn.Embedding(rows, width))
    )
    inner = (tables + 1) ** 2 + tables * width
    net = _Net(
        run,
        tables=nn.ModuleList([kind() for _ in range(tables)]),
        bottom=nn.Sequential(nn.Linear(10, width), nn.ReLU()),
        top=nn.Sequential(nn.Linear(inner, 150), nn.ReLU(), nn.Linear(150, 1)),
    )  # fmt: skip
    shape = (count, tables, 3) if bags else (count, tables)
    batch = (torch.randn(count, 10), torch.randint(rows, shape), torch.randint(2, (count,)).float())
    return net, batch, lambda output, given: functional.binary_cross_entropy_with_logits(output, given[-1])


def _tokens(layer: Callable[[], nn.Module], width: int, length: int, count: int, depth: int) -> Any:
    """Words, layers of the shape of what they get, each added to it and normalised, and scores of words."""

    def run(part: Any, tokens: torch.Tensor) -> torch.Tensor:
        x = part["words"](tokens)
        for layer_, norm in zip(part["layers"], part["norms"], strict=True):
            x = norm(x + layer_(x))
        return part["out"](x)

    net = _Net(
        run,
        words=nn.Embedding(1500, width),
        layers=nn.ModuleList([layer() for _ in range(depth)]),
        norms=nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)]),
        out=nn.Linear(width, 900),
    )
    return net, (torch.randint(1500, (count, length)), torch.randint(900, (count, length))), _entropy


def _separable(
    widths: tuple[int, ...], wider: int, side: int, count: int, *, kernel: int = 3, hard: bool = False
) -> Any:
    body = separable(widths, wider, kernel, nn.Hardswish if hard else nn.ReLU6)
    return _Net(lambda part, x: part["body"](x), body=body), _pictures(count, side), _entropy


def _dilated(width: int, depth: int, length: int, count: int) -> Any:
    def run(part: Any, x: torch.Tensor) -> torch.Tensor:
        return part["out"](torch.relu(part["body"](part["stem"](x)))).transpose(1, 2)

    net = _Net(run, stem=nn.Conv1d(1, width, 1), body=Dilated(width, depth), out=nn.Conv1d(width, 30, 1))
    return net, (torch.randn(count, 1, length), torch.randint(30, (count, length))), _entropy


def _experts(width: int, inner: int, experts: int, length: int, count: int) -> Any:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = Experts(width, inner, experts, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.experts(x.flatten(0, 1)).view_as(x)

    return _tokens(Flat, width, length, count, 2)


def _repeated(width: int, length: int, count: int, depth: int) -> Any:
    def layer() -> nn.Module:
        return Repeated(nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)))

    return _tokens(layer, width, length, count, depth)


def _pictures(count: int, side: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(count, 3, side, side), torch.randint(30, (count,))


def exercises(*, quick: bool = False) -> Iterator[Exercise]:
    """The calibration set; quick: one of each kind."""
    yield Exercise("dense-192x3-24", lambda: _dense(192, 3, 24))
    yield Exercise("plain-20-40-6", lambda: _plain(20, 40, 6))
    yield Exercise("residual-40-56-6", lambda: _residual(40, 56, 6, 2))
    yield Exercise("lstm-144x20-12", lambda: _recurrent("lstm", 144, 20, 12))
    yield Exercise("attention-160x4-48", lambda: _attention(160, 4, 48, 6, 2, causal=False))
    yield Exercise("tables-6-3000", lambda: _tables(6, 3000, 20, 48, bags=True))
    yield Exercise("scan-72x6", lambda: _tokens(lambda: Scan(72, 8), 72, 22, 6, 1))
    yield Exercise("separable-20-56", lambda: _separable((20, 20, 44), 4, 56, 6))
    if quick:
        return
    yield Exercise("dense-600x6-96", lambda: _dense(600, 6, 96), "momentum")
    yield Exercise("dense-1400x1-20", lambda: _dense(1400, 1, 20))
    yield Exercise("dense-900x2-160", lambda: _dense(900, 2, 160), "adam")
    yield Exercise("plain-56-40-24", lambda: _plain(56, 40, 24))
    yield Exercise("plain-96-72-10", lambda: _plain(96, 72, 10))
    yield Exercise("residual-80-112-12", lambda: _residual(80, 112, 12, 3))
    yield Exercise("residual-176-40-20", lambda: _residual(176, 40, 20, 4))
    yield Exercise("grouped-48-80-10", lambda: _residual(48, 80, 10, 2, grouped=True))
    yield Exercise("lstm-384x24-24", lambda: _recurrent("lstm", 384, 24, 24))
    yield Exercise("gru-208x28-24", lambda: _recurrent("gru", 208, 28, 24))
    yield Exercise("rnn-272x20-20", lambda: _recurrent("rnn", 272, 20, 20))
    yield Exercise("steps-112x24", lambda: _tokens(lambda: Steps(112), 112, 24, 20, 2))
    yield Exercise("scan-144x12", lambda: _tokens(lambda: Scan(144, 12), 144, 36, 10, 2))
    yield Exercise("scan-208x16", lambda: _tokens(lambda: Scan(208, 16), 208, 56, 4, 3), "adamw")
    yield Exercise("separable-24-112", lambda: _separable((24, 24, 44, 44, 80), 6, 112, 8))
    yield Exercise(
        "separable-44-72", lambda: _separable((44, 44, 72, 72, 104), 3, 72, 20, kernel=5, hard=True), "momentum"
    )
    yield Exercise("separable-48-144", lambda: _separable((48, 48, 96), 4, 144, 4))
    yield Exercise("dilated-44x6", lambda: _dilated(44, 6, 720, 6))
    yield Exercise("dilated-104x8", lambda: _dilated(104, 8, 360, 4), "adam")
    if HAS_EXPERTS:
        yield Exercise("experts-144x6", lambda: _experts(144, 320, 6, 30, 12))
        yield Exercise("experts-240x12", lambda: _experts(240, 448, 12, 44, 10), "adamw")
    yield Exercise("repeated-240x4", lambda: _repeated(240, 44, 12, 4))
    yield Exercise("repeated-448x3", lambda: _repeated(448, 30, 20, 3), "adamw")
    yield Exercise("attention-336x6-72", lambda: _attention(336, 6, 72, 12, 3, causal=False))
    yield Exercise("attention-240x5-96", lambda: _attention(240, 5, 96, 20, 2, causal=True), "adamw")
    yield Exercise("attention-400x8-56", lambda: _attention(400, 8, 56, 10, 3, causal=True))
    yield Exercise("tables-12-7000", lambda: _tables(12, 7000, 40, 144, bags=False))
    yield Exercise("tables-20-2500", lambda: _tables(20, 2500, 16, 400, bags=True), "adam")

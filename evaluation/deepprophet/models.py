"""The models that DeepProphet is evaluated on: 14 of five families, small enough for a machine with two cores.

They need PyTorch. Each has the structure that its name says, with small inputs. Neither the models nor their layers are
in the set that a device is calibrated with (``deepprophet.device.calibration_set``). ``factory(NAME)`` returns what
``trainyard predict`` needs: a function from a batch size to a model, an example batch and a loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

ModelBatchLoss = tuple[nn.Module, tuple[torch.Tensor, ...], Callable[[Any, tuple[torch.Tensor, ...]], torch.Tensor]]


def _classify(output: torch.Tensor, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Returns the cross entropy against the last tensor of the batch; a sequence's positions count as examples."""
    return functional.cross_entropy(output.flatten(0, -2), batch[-1].flatten())


def _click(output: torch.Tensor, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(output, batch[-1])


class Labelled(nn.Module):
    """A model whose input is the batch without its last tensor, which holds the labels."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        """Returns the body's output."""
        return self.body(*batch[:-1])


def _mlp(sizes: tuple[int, ...]) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _vgg() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width in (64, "pool", 128, "pool", 256, 256, "pool", 512, "pool"):
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
        channels = width
    head = (nn.Flatten(), nn.Linear(512 * 4, 512), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(512, 10))
    return nn.Sequential(*layers, *head)


def _alexnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 48, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(48, 128, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(128, 192, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(192, 128, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Dropout(), nn.Linear(1152, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 100),
    )  # fmt: skip


class Residual(nn.Module):
    """A residual block: two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times as many channels out."""

    def __init__(self, channels: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        out = width * 4 if bottleneck else width
        steps = (
            [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
            if bottleneck
            else [(channels, width, 3, stride), (width, out, 3, 1)]
        )
        layers: list[nn.Module] = []
        for before, after, kernel, step in steps:
            layers += [
                nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
        self.way = nn.Sequential(*layers[:-1])
        same = stride == 1 and channels == out
        self.skip = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's output."""
        return functional.relu(self.way(x) + self.skip(x), inplace=True)


def resnet(depths: tuple[int, ...], *, bottleneck: bool, classes: int = 10, imagenet: bool = False) -> nn.Module:
    """Returns a ResNet: (2, 2, 2, 2) is ResNet-18, and (3, 4, 6, 3) with bottlenecks is ResNet-50.

    The stem is that for ImageNet, or that for small pictures.
    """
    stem = (
        [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        if imagenet
        else [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    )
    channels, blocks = 64, []
    for level, depth in enumerate(depths):
        width = 64 << level
        for position in range(depth):
            stride = 2 if level > 0 and position == 0 else 1
            blocks.append(Residual(channels, width, stride, bottleneck=bottleneck))
            channels = width * 4 if bottleneck else width
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Recurrent(nn.Module):
    """Embedding, LSTM or GRU, and a linear layer at each position (a language model) or at the last (a classifier)."""

    def __init__(self, kind: str, *, words: int, width: int, layers: int, classes: int, each: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.core = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](width, width, layers, batch_first=True)
        self.out = nn.Linear(width, classes)
        self.each = each

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the logits."""
        states, _ = self.core(self.words(tokens))
        return self.out(states if self.each else states[:, -1])


class Encoder(nn.Module):
    """A Transformer encoder over tokens, as in BERT, with logits at each position."""

    def __init__(self, *, words: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, activation="gelu")
        self.core = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the logits."""
        return self.out(self.core(self.words(tokens) + self.places))


class Patches(nn.Module):
    """A vision Transformer: patches of a picture, an encoder that normalises first, the mean of the positions."""

    def __init__(self, *, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.cut, self.places = nn.Conv2d(3, width, 4, 4), nn.Parameter(torch.zeros(64, width))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True, norm_first=True, dropout=0.0)
        self.core = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Returns the logits."""
        return self.out(self.core(self.cut(pictures).flatten(2).transpose(1, 2) + self.places).mean(1))


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward layer, each after a normalisation, as in GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's output."""
        count, length, width = x.shape
        parts = self.inward(self.first(x)).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.outward(seen.transpose(1, 2).reshape(count, length, width))
        return x + self.wide(self.second(x))


class Decoder(nn.Module):
    """A Transformer decoder, as in GPT-2, which predicts the next token at each position."""

    def __init__(self, *, words: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.core = nn.Sequential(*(DecoderBlock(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        self.out = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the logits."""
        places = self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.out(self.core(self.words(tokens) + places))


class Translator(nn.Module):
    """An encoder and a decoder with attention between them, as in the first Transformer."""

    def __init__(self, *, words: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.core = nn.Transformer(width, heads, layers, layers, 3 * width, dropout=0.1, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Returns the logits."""
        mask = self.core.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.core(self.words(source), self.words(target), tgt_mask=mask, tgt_is_causal=True))


class Recommender(nn.Module):
    """Tables of embeddings and a small MLP, whose outputs go into another MLP.

    It gets their pairwise products (DLRM), or all outputs (wide and deep).
    """

    def __init__(self, *, tables: int, rows: int, width: int, pairs: bool, bags: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, width, mode="sum") if bags else nn.Embedding(rows, width) for _ in range(tables)]
        )
        self.bottom = _mlp((13, 96, width))
        inner = (tables + 1) * tables // 2 + width if pairs else (tables + 1) * width
        self.top = _mlp((inner, 224, 112, 1))
        self.pairs = pairs

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Returns one logit for each example."""
        bottom = self.bottom(dense)
        embedded = [table(sparse[:, number]) for number, table in enumerate(self.tables)]
        if self.pairs:
            stacked = torch.stack([bottom, *embedded], 1)
            products = torch.bmm(stacked, stacked.transpose(1, 2))
            rows, columns = torch.tril_indices(stacked.shape[1], stacked.shape[1], -1)
            joined = torch.cat([bottom, products[:, rows, columns]], 1)
        else:
            joined = torch.cat([bottom, *embedded], 1)
        return self.top(joined).squeeze(1)


def _pictures(count: int, side: int = 32, classes: int = 10) -> tuple[torch.Tensor, ...]:
    return torch.randn(count, 3, side, side), torch.randint(classes, (count,))


def _tokens(count: int, length: int, words: int) -> tuple[torch.Tensor, ...]:
    return torch.randint(words, (count, length)), torch.randint(words, (count, length))


def _clicks(count: int, tables: int, rows: int, each: int) -> tuple[torch.Tensor, ...]:
    shape = (count, tables, each) if each else (count, tables)
    return torch.randn(count, 13), torch.randint(rows, shape), torch.randint(2, (count,)).float()


def _vectors(count: int, width: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(count, width), torch.randint(10, (count,))


_MODELS: dict[str, tuple[str, Callable[[], nn.Module], Callable[[int], tuple[torch.Tensor, ...]]]] = {
    "mlp-wide": ("mlp", lambda: _mlp((784, 1024, 1024, 10)), lambda n: _vectors(n, 784)),
    "mlp-deep": ("mlp", lambda: _mlp((256, *(448,) * 10, 10)), lambda n: _vectors(n, 256)),
    "vgg": ("cnn", _vgg, _pictures),
    "alexnet": ("cnn", _alexnet, lambda n: _pictures(n, 96, 100)),
    "resnet18": ("cnn", lambda: resnet((2, 2, 2, 2), bottleneck=False), _pictures),
    "resnet50": (
        "cnn",
        lambda: resnet((3, 4, 6, 3), bottleneck=True, classes=100, imagenet=True),
        lambda n: _pictures(n, 96, 100),
    ),
    "lstm": (
        "recurrent",
        lambda: Recurrent("lstm", words=4000, width=256, layers=2, classes=4000, each=True),
        lambda n: _tokens(n, 32, 4000),
    ),
    "gru": (
        "recurrent",
        lambda: Recurrent("gru", words=6000, width=320, layers=1, classes=20, each=False),
        lambda n: (torch.randint(6000, (n, 48)), torch.randint(20, (n,))),
    ),
    "encoder": (
        "transformer",
        lambda: Encoder(words=4000, length=64, width=256, heads=4, layers=4),
        lambda n: _tokens(n, 64, 4000),
    ),
    "vit": ("transformer", lambda: Patches(width=192, heads=3, layers=6), _pictures),
    "decoder": (
        "transformer",
        lambda: Decoder(words=5000, length=128, width=256, heads=8, layers=4),
        lambda n: _tokens(n, 128, 5000),
    ),
    "translator": (
        "transformer",
        lambda: Translator(words=3000, width=256, heads=8, layers=2),
        lambda n: (torch.randint(3000, (n, 40)), torch.randint(3000, (n, 36)), torch.randint(3000, (n, 36))),
    ),
    "dlrm": (
        "recommender",
        lambda: Recommender(tables=8, rows=10_000, width=32, pairs=True, bags=True),
        lambda n: _clicks(n, 8, 10_000, 4),
    ),
    "wide-deep": (
        "recommender",
        lambda: Recommender(tables=16, rows=4000, width=24, pairs=False, bags=False),
        lambda n: _clicks(n, 16, 4000, 0),
    ),
}

FAMILIES: dict[str, str] = {name: family for name, (family, _, _) in _MODELS.items()}


def factory(name: str) -> Callable[..., ModelBatchLoss]:
    """Returns a function that builds a model with an example batch and its loss. Raises KeyError."""
    family, model, batch = _MODELS[name]

    def make(batch_size: int = 32) -> ModelBatchLoss:
        return Labelled(model()), batch(batch_size), _click if family == "recommender" else _classify

    return make


def __getattr__(name: str) -> Callable[..., ModelBatchLoss]:
    """Returns the factory of a model, so that ``trainyard predict`` takes ``evaluation.deepprophet.models:resnet18``.

    Underscores in ``name`` stand for dashes. Raises AttributeError.
    """
    model = name.replace("_", "-")
    if model not in _MODELS:
        raise AttributeError(f"no model {name}; there are {', '.join(_MODELS)}")
    return factory(model)

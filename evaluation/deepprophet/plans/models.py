"""Models that plans of training spread: chains of a first part, four blocks and a last part. They need PyTorch.

``trainyard predict evaluation.deepprophet.plans.models:gpt`` takes each by its name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Batch = tuple[torch.Tensor, torch.Tensor]
"""The model's input, and the labels, which only the loss takes."""

ModelBatchLoss = tuple[nn.Module, Batch, Callable[[Any, Batch], torch.Tensor]]
BLOCKS = 4
WORDS, LENGTH, CLASSES = 2000, 32, 10


class Words(nn.Module):
    """Embeddings of words and of their places."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Parameter(torch.zeros(LENGTH, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns a vector for each word."""
        return self.words(tokens) + self.places


class Attention(nn.Module):
    """Causal self-attention. The number of heads follows from the sizes of tensors, so that ranks can share them."""

    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns what each word has seen of those before it."""
        count, length, _ = x.shape
        query, key, value = (
            layer(x).view(count, length, -1, self.head).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(count, length, -1))


class AttentionBlock(nn.Module):
    """Self-attention and a feed-forward layer, each after a normalisation."""

    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, head)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's output."""
        x = x + self.attention(self.before(x))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class WideBlock(nn.Module):
    """A wide and a narrow linear layer, whose output is added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's output."""
        return x + self.narrow(functional.relu(self.wide(x)))


def _chain(first: nn.Module, blocks: list[nn.Module], last: nn.Module) -> nn.Module:
    return nn.Sequential(OrderedDict(first=first, blocks=nn.Sequential(*blocks), last=last))


def _convolutions(before: int, after: int, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


def _loss(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Returns the cross entropy against the labels; a sequence's words count as examples."""
    return functional.cross_entropy(output.flatten(0, -2), batch[-1].flatten())


def gpt(batch_size: int = 8) -> ModelBatchLoss:
    """Returns a Transformer decoder of 256 wide with 8 heads, which predicts the next word."""
    width = 256
    last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False))
    blocks: list[nn.Module] = [AttentionBlock(width, head=32) for _ in range(BLOCKS)]
    tokens, labels = (torch.randint(WORDS, (batch_size, LENGTH)) for _ in range(2))
    return _chain(Words(width), blocks, last), (tokens, labels), _loss


def mlp(batch_size: int = 128) -> ModelBatchLoss:
    """Returns a feed-forward network of blocks that are 384 wide and 1536 inside."""
    width = 384
    blocks: list[nn.Module] = [WideBlock(width) for _ in range(BLOCKS)]
    batch = torch.randn(batch_size, 200), torch.randint(CLASSES, (batch_size,))
    return _chain(nn.Linear(200, width), blocks, nn.Linear(width, CLASSES)), batch, _loss


def cnn(batch_size: int = 16) -> ModelBatchLoss:
    """Returns a network of convolutions on small pictures."""
    first = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
    sizes = ((32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1))
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, CLASSES))
    batch = torch.randn(batch_size, 3, 32, 32), torch.randint(CLASSES, (batch_size,))
    return _chain(first, [_convolutions(*size) for size in sizes], last), batch, _loss


MODELS: dict[str, Callable[[int], ModelBatchLoss]] = {"gpt": gpt, "mlp": mlp, "cnn": cnn}

"""scikit-learn's handwritten digits, shared out among workers, and how many of them a model names. Needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import nn

HELD_OUT = 397
PIXELS, SIDE, CLASSES = 64, 8, 10


@dataclass(frozen=True, slots=True)
class Digits:
    """Pictures (n, 64) in 0..1 and what they show: one worker's share to train on, and what nobody trains on."""

    pictures: torch.Tensor
    labels: torch.Tensor
    held_out: torch.Tensor
    held_out_labels: torch.Tensor


def digits(seed: int, rank: int, workers: int) -> Digits:
    """The share of worker ``rank``; all workers of a seed hold out the same."""
    data = load_digits()
    pictures = torch.tensor(data.data, dtype=torch.float32) / 16
    labels = torch.tensor(data.target, dtype=torch.long)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    held, mine = order[:HELD_OUT], order[HELD_OUT:][rank::workers]
    return Digits(pictures[mine], labels[mine], pictures[held], labels[held])


def accuracy(model: nn.Module, data: Digits) -> float:
    """Share of the held-out pictures that the model names."""
    with torch.no_grad():
        return float((model(data.held_out).argmax(dim=1) == data.held_out_labels).float().mean())

"""A part of the study's convolutional model. Needs PyTorch."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """x + two convolutions of it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, channels, 8, 8) both ways."""
        return torch.relu(x + self.second(torch.relu(self.first(x))))

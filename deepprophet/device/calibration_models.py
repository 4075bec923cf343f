"""Models of the calibration set whose operators are many and small, or of kinds that few models have. Needs PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Scan(nn.Module):
    """A selective state space, one step after the other: hundreds of small operators, each of which waits for the one
    before. (Gu and Dao, 2023, arXiv:2312.00752, have the equations.)
    """

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.sizes = (width, width, states, states)
        self.inward, self.outward = nn.Linear(width, sum(self.sizes)), nn.Linear(width, width)
        self.decay = nn.Parameter(torch.zeros(width, states))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The states' outputs, of the shape of ``x`` (examples, steps, width)."""
        value, pace, into, out = self.inward(x).split(self.sizes, -1)
        pace = functional.softplus(pace)
        kept = torch.exp(-pace.unsqueeze(-1) * torch.exp(self.decay))
        added = (pace * value).unsqueeze(-1) * into.unsqueeze(-2)
        state = torch.zeros_like(added[:, 0])
        outputs = []
        for place in range(x.shape[1]):
            state = kept[:, place] * state + added[:, place]
            outputs.append(torch.matmul(state, out[:, place].unsqueeze(-1)).squeeze(-1))
        return self.outward(torch.stack(outputs, 1) + value)


class Steps(nn.Module):
    """A recurrent cell that the model's own code calls at each step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The states at each step, of the shape of ``x`` (examples, steps, width)."""
        state, states = x.new_zeros(x.shape[0], x.shape[2]), []
        for step in x.unbind(1):
            state = self.cell(step, state)
            states.append(state)
        return torch.stack(states, 1)


class Separable(nn.Module):
    """Wide, depthwise, narrow: the block of small models for pictures."""

    def __init__(
        self, channels: int, wide: int, out: int, *, stride: int, kernel: int, bend: Callable[[], nn.Module]
    ) -> None:
        super().__init__()
        self.skips = stride == 1 and channels == out
        self.way = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), bend(),
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False), nn.BatchNorm2d(wide), bend(),
            nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        return x + self.way(x) if self.skips else self.way(x)


def separable(widths: Sequence[int], wider: int, kernel: int, bend: Callable[[], nn.Module]) -> nn.Module:
    """Blocks of such widths, each step to a new one by two."""
    blocks: list[nn.Module] = [nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0]), bend()]
    for before, after in itertools.pairwise(widths):
        stride = 1 if before == after else 2
        blocks.append(Separable(before, wider * before, after, stride=stride, kernel=kernel, bend=bend))
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 30))


class Dilated(nn.Module):
    """Gated convolutions over a series, with gaps that double: the block of models for sound."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.gates = nn.ModuleList(
            [nn.Conv1d(width, 2 * width, 3, padding=2**level, dilation=2**level) for level in range(depth)]
        )
        self.mixes = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of what each level adds, of the shape of ``x`` (examples, width, steps)."""
        seen = torch.zeros_like(x)
        for gate, mix in zip(self.gates, self.mixes, strict=True):
            first, second = gate(x).chunk(2, 1)
            added = mix(torch.tanh(first) * torch.sigmoid(second))
            x, seen = x + added, seen + added
        return seen


class Experts(nn.Module):
    """Each token goes to some of the experts: tokens are sorted by expert, and all experts are one grouped product."""

    def __init__(self, width: int, inner: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, inner) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, inner, width) / inner**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The experts' outputs, weighed, of the shape of ``x`` (tokens, width)."""
        weights, experts = torch.softmax(self.router(x), -1).topk(self.chosen, -1)
        order = experts.flatten().argsort()
        counts = torch.histc(experts.flatten().float(), self.up.shape[0], 0, self.up.shape[0] - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        given = x[order // self.chosen]
        inner = functional.silu(functional.grouped_mm(given, self.up, offs=ends))
        result = functional.grouped_mm(inner, self.down, offs=ends) * weights.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, order // self.chosen, result)


HAS_EXPERTS = hasattr(functional, "grouped_mm")
"""Whether this PyTorch multiplies in groups; versions before 2.10 do not."""


class Repeated(nn.Module):
    """A module that keeps its input only, and runs again in the backward pass."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        """The module's output."""
        return checkpoint(self.module, x, use_reentrant=False)

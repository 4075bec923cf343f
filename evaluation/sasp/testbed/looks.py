"""Worker 0's parameters on their way to the process that looks at them: a file a look. Needs PyTorch.

A look costs the worker no more than a copy. What a look finds, it finds in parameters as they were at its moment, so it
may be late.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

_END = "end"
_MICROSECONDS = 1e6


class Look(NamedTuple):
    """``seconds`` since the start, and the iterations done; ``path``: the parameters then."""

    seconds: float
    iteration: int
    path: Path


def leave(folder: Path, seconds: float, iteration: int, model: nn.Module) -> None:
    """Leave a copy of the parameters as they are: what is in flight is not waited for. Raises OSError."""
    copy = parameters_to_vector(model.parameters()).detach()
    part = folder / ".part"
    copy.numpy().tofile(part)
    part.rename(folder / f"{iteration:07d}-{round(seconds * _MICROSECONDS):012d}")


def end(folder: Path) -> None:
    """Say that no more will come. Raises OSError."""
    (folder / _END).touch()


def left(folder: Path) -> tuple[list[Look], bool]:
    """The looks that are there, the oldest first, and whether no more will come. Raises OSError."""
    # Asked for first: what is left before the end is there then.
    over = (folder / _END).exists()
    names = sorted(path.name for path in folder.iterdir() if "-" in path.name)
    parts = [name.split("-") for name in names]
    return [
        Look(int(moment) / _MICROSECONDS, int(iteration), folder / name)
        for name, (iteration, moment) in zip(names, parts, strict=True)
    ], over


def take(look: Look, model: nn.Module) -> None:
    """Put the look's parameters into a model like the worker's, and remove it. Raises OSError, RuntimeError."""
    values = torch.from_numpy(np.fromfile(look.path, dtype=np.float32))
    with torch.no_grad():
        vector_to_parameters(values, model.parameters())
    look.path.unlink()

"""Lets a worker wait in each layer, as a host waits for its accelerator. Needs PyTorch.

All hosts of the testbed share its processors, which also carry the network. Were computing done by them alone they
would be what is waited for, whatever the network does. So computing takes longer than the processor needs for it: after
each layer's forward pass, and before its backward pass, the worker waits for a share of ``seconds``. The shares are
those that the layers take of the task's computing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

SHARES = Path(__file__).parent / "shares.json"

Pass = Literal["forward", "backward"]
Mark = Callable[[Pass, str], None]
"""Called at the end of a layer's forward pass, and at the begin of its backward pass, with its name."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What each layer takes of an iteration's computing, by name; together 1."""

    forward: Mapping[str, float]
    backward: Mapping[str, float]


def kept(task: str, path: Path = SHARES) -> Shares:
    """The task's, which ``python -m evaluation.sasp.testbed.shares`` has measured. Raises OSError, ValueError."""
    try:
        return Shares(**json.loads(path.read_text())[task])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: there are no shares of {task}: {error}") from error


def keep(shares: Mapping[str, Shares], path: Path = SHARES) -> None:
    """Write them. Raises OSError."""
    path.write_text(json.dumps({task: asdict(of_task) for task, of_task in shares.items()}, indent=1) + "\n")


class Accelerator:
    """Waits for the layers' shares of ``seconds``."""

    def __init__(self, shares: Shares, seconds: float) -> None:
        self._waits = {"forward": shares.forward, "backward": shares.backward}
        self._seconds = seconds

    def wait(self, which: Pass, layer: str) -> None:
        """For one pass of one layer. Raises KeyError where there is no such layer."""
        time.sleep(self._waits[which][layer] * self._seconds)


def mark(model: nn.Module, at: Mark) -> None:
    """Let ``at`` be called in each training pass, for each module that has trained parameters and is called."""
    for name, module in model.named_modules():
        if any(parameter.requires_grad for parameter in module.parameters(recurse=False)):
            module.register_forward_hook(partial(_after_forward, at, name))


def _after_forward(at: Mark, name: str, _module: nn.Module, _arguments: Any, output: Any) -> None:
    if not torch.is_grad_enabled():
        return
    at("forward", name)
    first = output[0] if isinstance(output, tuple) else output
    # Its gradient is known right before the module's own backward pass.
    first.register_hook(lambda _gradient: at("backward", name))

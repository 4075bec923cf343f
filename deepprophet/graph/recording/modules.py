"""Which module of a model runs now, by its name. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from deepprophet.graph.recording.recorder import Recorder


@contextmanager
def named_modules(model: torch.nn.Module, recorder: Recorder) -> Iterator[None]:
    """Tell the recorder which module is called, by its name."""
    hooks = []
    stack: list[str] = []

    def enter(name: str) -> Any:
        def note(_: Any, __: Any) -> None:
            stack.append(recorder.module)
            recorder.module = name
            recorder.called += 1

        return note

    def leave(_: Any, __: Any, ___: Any) -> None:
        recorder.module = stack.pop()

    for name, module in model.named_modules():
        if name:
            hooks += [module.register_forward_pre_hook(enter(name)), module.register_forward_hook(leave)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()

"""The operators that PyTorch really runs in an iteration, to be compared with those that are traced."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepprophet.device.loop import iteration
from deepprophet.graph.recording.values import argument
from deepprophet.graph.spec import Call, parse, readable
from deepprophet.graph.subject import Subject

CPU = torch.device("cpu")


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        if not name.startswith(("prim.", "profiler.")):
            options = {key: argument(value) for key, value in (kwargs or {}).items()}
            self.keys.append(Call(name, tuple(argument(value) for value in args), options).key())
        return func(*args, **(kwargs or {}))


def really(given: Subject, optimizer: str) -> list[str]:
    run = iteration(given, optimizer, CPU)
    run()
    with Recorder() as recorder:
        run()
    return recorder.keys


def forget(key: str) -> str:
    """A key without the values of numbers: an optimiser's step counts on."""
    call = parse(key)
    return readable(call)

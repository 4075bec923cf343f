"""Measures single operators on this device, alone, on random tensors of the asked shapes. Needs PyTorch.

In an iteration an operator finds what the one before it wrote in the nearest cache, older tensors further away, and the
memory for its own results nowhere near. A loop that calls it again and again would have all of it at hand. So each call
is timed by itself, after the caches were gone over: once with its inputs touched last (near), once with nothing (far).
How far the inputs are in an iteration the graph knows (``Operator.far_share``).
"""

from __future__ import annotations

import gc
import math
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from deepprophet.costs.measured import SMALL_BYTES, Measurement, summary
from deepprophet.device import busy
from deepprophet.device.allocator import keep_memory
from deepprophet.device.random_inputs import UnsupportedArgumentError, make
from deepprophet.graph.spec import Call, parse

LOOPS = 9
"""A small operator is timed in so many loops, of which the median counts."""

FEW_PAGES = 8
"""A call that faults on more than so many has taken new memory, whose clearing an iteration is charged for apart."""

NEAR_FLUSH, FAR_FLUSH = 4 * 2**20, 48 * 2**20
"""So many bytes are touched to empty a core's own caches, and a processor's."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long an operator is measured in one state of the caches, and from how many calls; ``far``: in both states.

    ``fastest``: the share of the calls that count. The first take longer, which few calls must leave out. All efforts
    have the same, so that many calls tell what few tell.
    """

    seconds: float = 0.03
    least: int = 5
    most: int = 25
    warm: int = 2
    far: bool = True
    fastest: float = 0.5


THOROUGH = Effort()
BRIEF = Effort(seconds=0.01, least=2, most=12, warm=1, far=False)
"""A few calls, for a user who waits."""


class MeasurementError(Exception):
    """An operator that does not run alone on random tensors."""


def measure(key: str, device: torch.device, effort: Effort = THOROUGH) -> Measurement:
    """Measure the operator of a key; with effort that is not ``far`` far inputs take what near ones do.

    Raises MeasurementError.
    """
    call = parse(key)
    keep_memory()
    try:
        # As an iteration calls them: after autograd had its turn, in the mode for training.
        with _collected(), torch._C._AutoDispatchBelowAutograd():
            return _measured(call, device, effort)
    except UnsupportedArgumentError as error:
        raise MeasurementError(str(error)) from error
    except Exception as error:  # random values may be none that the operator takes
        lines = str(error).splitlines() or [""]
        raise MeasurementError(f"{type(error).__name__}: {lines[0][:200]}") from error


def _measured(call: Call, device: torch.device, effort: Effort) -> Measurement:
    operator = resolve(call.name)
    arguments, options = make(call, device)
    inputs = [x for x in tree_flatten((arguments, options))[0] if isinstance(x, torch.Tensor)]
    for _ in range(effort.warm):
        results = operator(*arguments, **options)
    _finish(device)
    written = [x for x in tree_flatten(results)[0] if isinstance(x, torch.Tensor)]
    size = sum(x.numel() * x.element_size() for x in (*inputs, *written))
    del results, written

    def run() -> None:
        operator(*arguments, **options)

    # In a loop a small operator's code and data stay in a core's own caches, as they do in an iteration.
    if size < SMALL_BYTES or _is_view(operator):
        near, disturbed = _looped(run, effort.seconds, device)
        return summary(near, [], call.name, disturbed=disturbed)

    def touch() -> None:
        for tensor in inputs:
            tensor.sum()

    near, disturbed = _singles(run, effort, device, _scratch(NEAR_FLUSH, device), touch)
    far: list[float] = []
    if effort.far:
        far, far_too = _singles(run, effort, device, _scratch(FAR_FLUSH, device), None)
        disturbed = disturbed or far_too
    return summary(near, far, call.name, disturbed=disturbed)


def resolve(name: str) -> Callable[..., Any]:
    """``aten.mm.default`` as PyTorch's operator. Raises UnsupportedArgumentError."""
    library, operator, overload = (*name.split("."), "default", "default")[:3]
    try:
        function: Callable[..., Any] = getattr(getattr(getattr(torch.ops, library), operator), overload)
    except AttributeError as error:
        raise UnsupportedArgumentError(f"this PyTorch has no operator {name}") from error
    return function


def _is_view(operator: Any) -> bool:
    return bool(getattr(operator, "is_view", False))


def _looped(run: Callable[[], None], seconds: float, device: torch.device) -> tuple[list[float], bool]:
    """Seconds of a call, by several loops; whether none of them had the processor to itself."""
    began = time.perf_counter()
    run()
    _finish(device)
    once = max(time.perf_counter() - began, 5e-7)
    # In-place operators change their inputs: not so often that numbers run out of range.
    each = max(1, min(100, round(seconds / LOOPS / once)))
    quiet: list[float] = []
    disturbed: list[float] = []

    def loop() -> None:
        for _ in range(each):
            run()
        _finish(device)

    for _ in range(LOOPS):
        took, had_processor = _clocked(loop, device)
        (quiet if had_processor else disturbed).append(took / each)
    return quiet or disturbed, not quiet


def _clocked(run: Callable[[], None], device: torch.device) -> tuple[float, bool]:
    """Seconds of a call that waits for its end, and whether it had a processor for nearly all of them.

    An operator on a CPU never sleeps: where it had a processor for less, something else had it.
    """
    # On one thread our own other threads, as of a factory, do not count; else all that compute do.
    processor = time.thread_time if torch.get_num_threads() == 1 else time.process_time
    used, start = processor(), time.perf_counter()
    run()
    took = time.perf_counter() - start
    used = processor() - used
    return took, device.type != "cpu" or used >= busy.MIN_PROCESSOR_SHARE * took


def _singles(
    run: Callable[[], None],
    effort: Effort,
    device: torch.device,
    scratch: torch.Tensor,
    touch: Callable[[], None] | None,
) -> tuple[list[float], bool]:
    """Seconds of those single calls that count, and whether something else had the processor during each.

    Calls that took new pages from the system do not count, unless each did, and calls during which something else had
    the processor least of all.
    """
    kept: list[float] = []
    paged: list[float] = []
    disturbed: list[float] = []

    def once() -> None:
        run()
        _finish(device)

    began = time.perf_counter()
    while len(kept) < effort.least or (
        len(kept) + len(paged) + len(disturbed) < effort.most and time.perf_counter() - began < effort.seconds
    ):
        scratch.add_(1)
        if touch is not None:
            touch()
        _finish(device)
        pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        took, had_processor = _clocked(once, device)
        pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - pages
        (disturbed if not had_processor else paged if pages > FEW_PAGES else kept).append(took)
        calls = len(kept) + len(paged) + len(disturbed)
        if calls - len(kept) >= effort.most or (
            calls >= min(3, effort.least) and sum(kept) + sum(paged) + sum(disturbed) > 4 * effort.seconds
        ):
            break
    counted = sorted(kept or paged or disturbed)
    return counted[: math.ceil(len(counted) * effort.fastest)], not (kept or paged)


_scratches: dict[tuple[str, int], torch.Tensor] = {}


def _scratch(size: int, device: torch.device) -> torch.Tensor:
    where = (str(device), size)
    if where not in _scratches:
        _scratches[where] = torch.zeros(size // 4, dtype=torch.int32, device=device)
    return _scratches[where]


@contextmanager
def _collected() -> Iterator[None]:
    """Python's own collection of garbage waits meanwhile."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)

"""Whole training iterations of a model, timed: for the calibration set, and for who checks predictions. Needs PyTorch.

A prediction never runs one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from deepprophet.graph.subject import Subject, optimiser, total

WARM_ITERATIONS = 3
MIN_ITERATIONS = 7


def iteration(
    subject: Subject, optimizer: str, device: torch.device, model: torch.nn.Module | None = None
) -> Callable[[], None]:
    """One training iteration, to be called again and again. ``model`` wraps the subject's own, if given."""
    own = subject.model.to(device).train()
    runs = own if model is None else model
    batch = subject.batch.each(lambda tensor: tensor.to(device))
    step = optimiser(optimizer, [parameter for parameter in own.parameters() if parameter.requires_grad])

    def run() -> None:
        own.zero_grad(set_to_none=True)
        total(runs(*batch.arguments, **batch.options), batch, subject.loss).backward()
        if step is not None:
            step.step()

    return run


def timed(run: Callable[[], None], device: torch.device, *, seconds: float, most: int = 400) -> list[float]:
    """Seconds of each of several iterations, after a few that are not counted."""
    for _ in range(WARM_ITERATIONS):
        run()
    finish(device)
    samples: list[float] = []
    while len(samples) < MIN_ITERATIONS or (sum(samples) < seconds and len(samples) < most):
        began = time.perf_counter()
        run()
        finish(device)
        samples.append(time.perf_counter() - began)
    return samples


def finish(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)

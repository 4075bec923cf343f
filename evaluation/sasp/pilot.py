"""Training with late gradients in one process: how learning rates and lengths of ``scripts/evaluate sasp`` are chosen.

Every worker's gradients are of parameters that lack the last ``delay`` iterations: the most that SSP's bound, and
SaSP's own, let them be late. ASP's have no bound; they are given the same.

    .venv-frameworks/bin/python -m evaluation.sasp.pilot mlp --iterations 200 --learning-rate 0.0003 0.001
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Sequence

import torch
from torch import nn

from evaluation.pytorch.digits import accuracy, digits
from evaluation.sasp import models
from evaluation.sasp.claim import BATCH, TARGET, WORKERS
from evaluation.sasp.request import FAMILIES, Point, Training, reached
from sasp.core.scheme import parse

DELAY = 2
SEEDS = (1, 2, 3, 4, 5)
"""The claim's are others."""


def late_training(training: Training, seed: int, *, delay: int) -> tuple[Point, ...]:
    """Held-out accuracy by iteration (seconds of 0), with the data, batches and steps of ``evaluation.sasp.job``."""
    model = models.make(training.family, seed)
    shares = [digits(seed, rank, WORKERS) for rank in range(WORKERS)]
    draws = [models.draws(seed, rank) for rank in range(WORKERS)]
    held = [nn.Parameter(worker_gradients.detach().clone()) for worker_gradients in model.parameters()]
    optimizer = models.optimizer(held, training.learning_rate)
    late: deque[list[torch.Tensor]] = deque([_copies(held)], maxlen=delay + 1)
    points = []
    for iteration in range(1, training.iterations + 1):
        _put(model, late[0])
        sent = [models.gradients(model, share, training.batch, draw) for share, draw in zip(shares, draws, strict=True)]
        if parse(training.scheme).together:
            sent = [[torch.stack(parts).sum(dim=0) for parts in zip(*sent, strict=True)]]
        for worker_gradients in sent:
            for parameter, gradient in zip(held, worker_gradients, strict=True):
                parameter.grad = gradient / WORKERS
            optimizer.step()
        late.append(_copies(held))
        if iteration % models.LOOK_EVERY == 0:
            _put(model, late[-1])
            points.append((0.0, iteration, accuracy(model, shares[0])))
    return tuple(points)


def _copies(parameters: Sequence[nn.Parameter]) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in parameters]


def _put(model: nn.Module, values: Sequence[torch.Tensor]) -> None:
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), values, strict=True):
            parameter.copy_(value)


def main() -> int:
    """A line a learning rate and kind of scheme: iterations to the target by seed (- never), the last accuracies."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.sasp.pilot", description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--target", type=float, default=TARGET)
    parser.add_argument("--learning-rate", type=float, nargs="+", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for scheme, delay in (("bsp", 0), (f"ssp:{DELAY}", DELAY)):
        for rate in options.learning_rate:
            training = Training(options.family, scheme, options.iterations, options.batch, rate)
            runs = [late_training(training, seed, delay=delay) for seed in SEEDS]
            first = [reached(points, options.target) for points in runs]
            when = ", ".join("-" if point is None else f"{point[1]}" for point in first)
            last = ", ".join(f"{points[-1][2]:.2f}" for points in runs)
            sys.stdout.write(f"{options.family} {scheme} late by {delay}, rate {rate:g}: {when}; at the end {last}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

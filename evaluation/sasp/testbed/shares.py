"""``python -m evaluation.sasp.testbed.shares``: measures what each layer takes of a task's computing, into a file.

Only the shares count on the testbed, so any machine may measure them.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median

import torch

from evaluation.sasp.study.tasks import TASKS, Task
from evaluation.sasp.testbed.accelerator import Pass, Shares, keep, mark
from topologies.signals import exit_status

WARM_UP, MEASURED = 5, 30
"""Iterations that are not measured at first, and those that are."""


class Stretches:
    """The time from one mark to the next, and whose it is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[Pass, dict[str, list[float]]] = {"forward": defaultdict(list), "backward": defaultdict(list)}
        self._clock = clock
        self._last = 0.0
        self._open: list[float] | None = None

    def begin(self) -> None:
        """An iteration begins."""
        self._last, self._open = self._clock(), None

    def mark(self, which: Pass, layer: str) -> None:
        """A forward pass ends here, and what was since the last mark is its; a backward pass begins here."""
        self._close()
        if which == "forward":
            self.seconds[which][layer].append(self._clock() - self._last)
        else:
            self._open = self.seconds[which][layer]
        self._last = self._clock()

    def end(self) -> None:
        """The iteration ends."""
        self._close()

    def _close(self) -> None:
        """The backward pass that is open ends here."""
        if self._open is not None:
            self._open.append(self._clock() - self._last)
            self._last, self._open = self._clock(), None


def measure(task: Task) -> Shares:
    """Train a worker alone for a few iterations."""
    model, data = task.seeded_model(0), task.data(0, 0, 1)
    # Other programs on this processor must not count.
    stretches = Stretches(time.thread_time)
    for iteration in range(WARM_UP + MEASURED):
        if iteration == WARM_UP:
            mark(model, stretches.mark)
        batch = next(data.batches)
        stretches.begin()
        task.loss(model, batch).backward()
        stretches.end()
        model.zero_grad()
    return as_shares(stretches)


def as_shares(stretches: Stretches) -> Shares:
    """The medians over iterations, together 1."""
    medians = {
        which: {layer: median(seconds) for layer, seconds in layers.items()}
        for which, layers in stretches.seconds.items()
    }
    whole = sum(sum(layers.values()) for layers in medians.values())
    forward, backward = (
        {layer: round(seconds / whole, 5) for layer, seconds in layers.items()} for layers in medians.values()
    )
    return Shares(forward, backward)


def main() -> int:
    """Measure all tasks."""
    torch.set_num_threads(1)
    keep({name: measure(task) for name, task in TASKS.items()})
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))

"""When, in an iteration of a task, layers are needed and ready: measured here by the product's own stopwatch."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.sasp.emulation.events import EvenlyLate
from evaluation.sasp.emulation.ranks import Averages, RankTransport
from evaluation.sasp.study.tasks import Task, make_optimizer
from evaluation.sasp.study.training import Worker
from sasp.core.partial import LayerTimes, Times
from sasp.training.options import AllReduceOptions
from sasp.training.partial import MEASURED, WARM_UP
from sasp.training.wrapping import decoupled_over_ranks


@dataclass(frozen=True, slots=True)
class Offsets:
    """Shares of an iteration's computing at which layers are needed and ready, and their elements, front first."""

    needed: tuple[float, ...]
    ready: tuple[float, ...]
    sizes: tuple[int, ...]

    def times(self, ratio: float, latency: float) -> Times:
        """Times of an iteration that computes for 1.

        All transfers take ``ratio``, and the network answers after ``latency``, both as shares of computing.
        """
        seconds = [ratio * size / sum(self.sizes) for size in self.sizes]
        return Times(1.0, tuple(map(LayerTimes, self.needed, self.ready, seconds)), latency)


def kept(task: Task, path: Path) -> Offsets:
    """Those of the file; measured and kept there first, if need be. Raises OSError, ValueError."""
    if not path.exists():
        path.write_text(json.dumps(asdict(measure(task))) + "\n")
    try:
        return Offsets(**{name: tuple(values) for name, values in json.loads(path.read_text()).items()})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path}: no offsets of layers: {error}") from error


class _Listening(RankTransport):
    """Keeps what the only rank says of its times."""

    said: Sequence[float] = ()

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Of one rank."""
        self.said = tuple(numbers)
        return list(numbers)


def measure(task: Task) -> Offsets:
    """Train a worker alone for a few iterations."""
    model = task.seeded_model(0)
    inner = make_optimizer(task.optimizer, model, 1e-6)
    worker = Worker(task, [task.data(0, 0, 1)], model, inner)
    layers = len(worker.layers)
    transport = _Listening(0, Averages(1), EvenlyLate((0,) * layers))
    options = AllReduceOptions(partial=True)
    # Other programs on this processor must not count, and nothing waits here.
    worker.optimizer = optimizer = decoupled_over_ranks(
        model, inner, worker.layers, transport, staleness=1, options=options, clock=time.thread_time
    )
    for _ in range(WARM_UP + MEASURED):
        worker.iterate()
    computing = transport.said[2 * layers]
    shares = [seconds / computing for seconds in transport.said[: 2 * layers]]
    return Offsets(tuple(shares[:layers]), tuple(shares[layers:]), tuple(layer.elements for layer in optimizer.layers))

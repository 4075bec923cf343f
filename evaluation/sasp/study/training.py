"""Trains one run: all workers in this process, by the product's code, with late gradients emulated. Needs PyTorch.

Ranks whose parameters are always the same compute as one, with all their batches in one: the mean of their gradients is
the same, but for the order in which numbers are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from evaluation.sasp.emulation.events import EvenlyLate, Event, Lateness, even_events
from evaluation.sasp.emulation.ranks import Averages, RankTransport
from evaluation.sasp.emulation.recording import Recording, read
from evaluation.sasp.emulation.repeating import RepeatedLateness, repeated_events
from evaluation.sasp.emulation.server import Job, WorkerTransport, play
from evaluation.sasp.study.arms import ARMS, Arm
from evaluation.sasp.study.runs import LOOK_EVERY, Goal, Point, Run, Trained
from evaluation.sasp.study.tasks import TASKS, WARM_UP, Batch, Data, Task, make_optimizer
from sasp.core.errors import SaspError
from sasp.training.layers import Layer, find_layers
from sasp.training.options import AllReduceOptions
from sasp.training.transports.greeting import JoinOptions
from sasp.training.wrapping import decoupled_over_ranks, decoupled_over_server

CHUNK_BYTES = 1 << 30
"""Each layer is one chunk: nothing overtakes here."""


class Stepped(Protocol):
    """What a training needs of an optimiser."""

    def step(self) -> object:
        """End the iteration."""

    def flush(self) -> None:
        """Wait for all that is in flight."""


class Worker:
    """One worker, which computes when it is told to; ``data``: of all whom it stands for."""

    def __init__(self, task: Task, data: Sequence[Data], model: nn.Module, inner: torch.optim.Optimizer) -> None:
        self.model = model
        self.data = data
        self.layers: Sequence[Layer] = find_layers(model, model.parameters())
        self.transport: WorkerTransport
        self.optimizer: Stepped
        self.halves = False
        self._task = task
        self._schedule = torch.optim.lr_scheduler.LambdaLR(inner, lambda done: min(1.0, (done + 1) / WARM_UP))

    def iterate(self) -> None:
        """One iteration: forward, backward, step; with half batches two of them."""
        for batch in self._batches():
            self._task.loss(self.model, batch).backward()
            self.optimizer.step()
        self._schedule.step()

    def _batches(self) -> list[Batch]:
        batches = [next(data.batches) for data in self.data]
        return [
            Batch(*map(torch.cat, zip(*parts, strict=True))) for parts in zip(*map(self._parts, batches), strict=True)
        ]

    def _parts(self, batch: Batch) -> list[Batch]:
        number = 2 if self.halves else 1
        return [Batch(*parts) for parts in zip(batch.inputs.chunk(number), batch.wanted.chunk(number), strict=True)]


def train(run: Run, goal: Goal, *, apart: bool = False) -> Trained:
    """Train as the run says, up to the goal; ``apart``: also ranks that could compute as one do not.

    Raises OSError, ValueError, SaspError for delays that cannot be read, or that are not of such an arm.
    """
    task, arm = TASKS[run.task], ARMS[run.arm]
    recorded = _recording(run, arm)
    arm = replace(arm, late=replace(arm.late, delay_compensation=run.strength))
    over_ranks = arm.scheme.together if recorded is None else not recorded.scheme
    as_one = over_ranks and recorded is None and arm.late.prediction != "local" and not apart
    data = [task.data(run.seed, rank, run.workers) for rank in range(run.workers)]
    workers, inners = [], []
    for own in [data] if as_one else [[one] for one in data]:
        model = task.seeded_model(run.seed)
        inners.append(make_optimizer(run.optimizer, model, run.rate))
        workers.append(Worker(task, own, model, inners[-1]))
    advance = (_ranks if over_ranks else _server)(run, arm, workers, inners, recorded)
    return Trained(run, tuple(_points(run, goal, workers, advance)))


def _recording(run: Run, arm: Arm) -> Recording | None:
    """The run's recording; None: it has none. Raises OSError, ValueError, SaspError."""
    if not run.delays:
        return None
    recorded = read(Path(run.delays))
    if recorded.scheme and arm.halves:
        raise SaspError(f"{run.delays}: it was recorded over a parameter server, and {arm.name} goes over all-reduce")
    if not recorded.scheme and not arm.scheme.together:
        raise SaspError(f"{run.delays}: it was recorded over all-reduce, and {arm.name} goes over a parameter server")
    return recorded


Advance = Callable[[range], None]
"""Lets all workers go through some iterations."""


def _points(run: Run, goal: Goal, workers: Sequence[Worker], advance: Advance) -> list[Point]:
    looked_at, metric = TASKS[run.task].seeded_model(run.seed), workers[0].data[0].metric
    points: list[Point] = []
    for begin in range(1, run.iterations + 1, LOOK_EVERY):
        end = min(begin + LOOK_EVERY, run.iterations + 1)
        advance(range(begin, end))
        points.append((end - 1, _look(workers[0].model, looked_at, metric)))
        if goal.is_met(points) and end <= run.iterations:
            return points
    workers[0].optimizer.flush()
    return [*points, (run.iterations, _look(workers[0].model, looked_at, metric))]


def _look(model: nn.Module, looked_at: nn.Module, metric: Callable[[nn.Module], float]) -> float:
    """The metric of the parameters as they are: a look at the model itself would wait for what is in flight."""
    with torch.no_grad():
        for mine, copy in zip(model.parameters(), looked_at.parameters(), strict=True):
            copy.copy_(mine)
        return float(f"{metric(looked_at):.6g}")


def _ranks(
    run: Run, arm: Arm, workers: Sequence[Worker], inners: Sequence[torch.optim.Optimizer], recorded: Recording | None
) -> Advance:
    averages, lateness = Averages(len(workers)), _lateness(run, recorded)
    options = AllReduceOptions(late=arm.late, halves=arm.halves)
    options.check()
    # What was late in the recording stands in it, layer by layer.
    staleness = max(run.leads) if recorded is None else arm.scheme.lead
    for rank, (worker, inner) in enumerate(zip(workers, inners, strict=True)):
        transport = RankTransport(rank, averages, lateness)
        optimizer = decoupled_over_ranks(
            worker.model, inner, worker.layers, transport, staleness=staleness, options=options
        )
        if recorded is None:
            optimizer.set_leads(run.leads)
        worker.optimizer, worker.halves = optimizer, arm.halves

    def advance(iterations: range) -> None:
        for _ in iterations:
            for worker in workers:
                worker.iterate()

    return advance


def _lateness(run: Run, recorded: Recording | None) -> Lateness:
    """As even as the leads, or as it was recorded."""
    return EvenlyLate(run.leads) if recorded is None else RepeatedLateness(recorded.used, *recorded.middle)


def _server(
    run: Run, arm: Arm, workers: Sequence[Worker], inners: Sequence[torch.optim.Optimizer], recorded: Recording | None
) -> Advance:
    who = JoinOptions(0, arm.scheme, "", CHUNK_BYTES if recorded is None else recorded.chunk_bytes, 0.0, arm.late)
    who.late.check_server()
    job = Job(run.workers, who, inners[0], workers[0].layers)
    lateness = _lateness(run, recorded)
    for rank, (worker, inner) in enumerate(zip(workers, inners, strict=True)):
        worker.transport = WorkerTransport(rank, job, lateness)
        worker.optimizer = decoupled_over_server(worker.model, inner, worker.layers, worker.transport, who)
    events = _recorded(recorded, arm, run) if recorded is not None else _even(arm, run, job, workers[0])

    def advance(iterations: range) -> None:
        # The server has then done all that worker 0 needs for what follows.
        while workers[0].transport.computed < iterations.stop - 1 and (event := next(events, None)) is not None:
            play([event], workers)
        if iterations.stop > run.iterations:
            play(events, workers)

    return advance


def _even(arm: Arm, run: Run, job: Job, first: Worker) -> Iterator[Event]:
    # Once the first worker has computed, it is known what a chunk is.
    first.iterate()
    assert job.layout is not None
    yield from even_events(arm.scheme, run.workers, len(job.layout), range(1, run.iterations + 1))


def _recorded(recorded: Recording, arm: Arm, run: Run) -> Iterator[Event]:
    first, last = recorded.middle
    return repeated_events(recorded.events, arm.scheme, first=first, last=last, iterations=run.iterations)

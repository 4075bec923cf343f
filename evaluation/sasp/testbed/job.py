"""A part of a PyTorch job on one host: the parameter server, a worker that trains, or the process that looks on.

A worker trains a task of the study, as the study does (``evaluation.sasp.study.training.Worker``). It writes down how
it goes on again and again, because the job is ended from outside as soon as the target is there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import get_args

import torch
import torch.distributed as dist
from pydantic import TypeAdapter
from torch import nn

import sasp
from evaluation.sasp.emulation.recorders import RecordingStore
from evaluation.sasp.emulation.recording import PARTS, Recording
from evaluation.sasp.study.arms import Transport
from evaluation.sasp.study.runs import LOOK_EVERY
from evaluation.sasp.study.tasks import TASKS, Task, make_optimizer
from evaluation.sasp.study.training import Stepped, Worker
from evaluation.sasp.testbed import accelerator, looks
from evaluation.sasp.testbed.exchange import Exchange, Membership, over_ranks, over_server
from evaluation.sasp.testbed.request import LOOKS, MEETING, Training, WorkerResult, name_of
from evaluation.sasp.testbed.watch import watch, yield_to_others
from sasp.server.server import serve
from topologies.trainer.results import write_whole
from topologies.trainer.start import Meeting

PATIENCE_SECONDS = 120.0
_SETTLE_SECONDS = 0.5
"""Until Gloo's threads have freed what they sent, before PyTorch's process group is ended."""

TOKEN = "of-this-arm"  # noqa: S105 (the network is the lab's own; the server asks for one off loopback)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command_line = argparse.ArgumentParser(prog="python -m evaluation.sasp.testbed.job", description=__doc__)
    command_line.add_argument("part", choices=["server", "worker", "watch"])
    command_line.add_argument("--task", choices=list(TASKS), required=True)
    command_line.add_argument("--training", type=_training, required=True, help="what is trained how, as JSON")
    command_line.add_argument("--transport", choices=get_args(Transport), required=True)
    command_line.add_argument("--at", required=True, metavar="ADDRESS:PORT", help="where server or first rank listens")
    command_line.add_argument("--workers", type=int, required=True)
    command_line.add_argument("--rank", type=int, default=0, help="the rank of a worker")
    command_line.add_argument("--interface", help="the network interface that the ranks of an all-reduce use")
    command_line.add_argument("--seed", type=int, required=True)
    command_line.add_argument("--accelerator-seconds", type=float, required=True, help="to wait in an iteration")
    command_line.add_argument("--chunk-bytes", type=int, required=True, help="the size of SaSP's chunks")
    command_line.add_argument("--record", action="store_true", help="record how late gradients are")
    command_line.add_argument("--folder", type=Path, required=True, help="the job's folder")
    return command_line


def _training(text: str) -> Training:
    return TypeAdapter(Training).validate_json(text)


def main() -> int:
    """0 done, 1 failed."""
    options = parser().parse_args()
    torch.set_num_threads(1)
    try:
        if options.part == "server":
            _serve(options)
        elif options.part == "watch":
            _watch(options)
        else:
            train(options)
    except sasp.SaspError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _serve(options: argparse.Namespace) -> None:
    """The server's part. Raises SaspError."""
    scheme = sasp.parse(options.training.scheme)
    store = RecordingStore(options.workers, scheme) if options.record else None
    serve(*_address(options), options.workers, scheme, token=TOKEN, patience=PATIENCE_SECONDS, store=store)
    if store is not None:
        recording = Recording(options.workers, str(scheme), options.chunk_bytes, tuple(store.events), ())
        recording.write(options.folder / f"{PARTS}-server.json")


def _watch(options: argparse.Namespace) -> None:
    """The part of who looks on. Raises OSError."""
    yield_to_others()
    task = TASKS[options.task]
    metric = task.data(options.seed, 0, options.workers).metric
    watch(task.seeded_model(options.seed), metric, options.training.target, options.folder)


def train(options: argparse.Namespace) -> None:
    """A worker's part. Raises SaspError, OSError."""
    task, training = TASKS[options.task], options.training
    data = task.data(options.seed, options.rank, options.workers)
    model = task.seeded_model(options.seed)
    _warm_up(task, options)
    optimizer = training.optimizer or task.optimizer
    rate = task.rate[optimizer] if training.learning_rate is None else training.learning_rate
    inner = make_optimizer(optimizer, model, rate)
    waits = accelerator.Accelerator(accelerator.kept(task.name), options.accelerator_seconds)
    accelerator.mark(model, waits.wait)
    worker = Worker(task, [data], model, inner)
    exchange = _exchange(options, model, inner)
    clock = StepClock(exchange.optimizer)
    worker.model, worker.optimizer, worker.halves = exchange.model, clock, training.ways.halves
    _iterate(options, worker, model, clock)
    if options.record and exchange.recorded is not None:
        exchange.recorded().write(options.folder / f"{PARTS}-{options.rank}.json")
    exchange.optimizer.close()
    if options.transport == "ranks":
        dist.barrier()
        time.sleep(_SETTLE_SECONDS)
        dist.destroy_process_group()


class StepClock:
    """An optimiser that measures what comes before each step: forward and backward."""

    def __init__(self, optimizer: Stepped) -> None:
        self.passes: list[float] = []
        self._optimizer = optimizer
        self._begin = 0.0

    def begin(self) -> None:
        """A forward pass begins."""
        self._begin = time.monotonic()

    def step(self) -> None:
        """Make it."""
        self.passes.append(time.monotonic() - self._begin)
        self._optimizer.step()
        self.begin()

    def flush(self) -> None:
        """Of the optimiser."""
        self._optimizer.flush()


def _iterate(options: argparse.Namespace, worker: Worker, model: nn.Module, clock: StepClock) -> None:
    """All iterations, from the start that is announced."""
    training, folder = options.training, options.folder
    looked_at = options.rank == 0 and training.target is not None
    begin, processor = _start(Meeting(folder / MEETING), options.rank), time.thread_time()

    def leave(iteration: int) -> None:
        seconds = time.monotonic() - begin
        result = WorkerResult(
            options.rank, iteration, seconds, median(clock.passes) * (2 if training.ways.halves else 1),
            time.thread_time() - processor, sum(parameter.nbytes for parameter in model.parameters()),
        )  # fmt: skip
        write_whole(folder / name_of(options.rank), json.dumps(asdict(result)))
        if looked_at:
            looks.leave(folder / LOOKS, seconds, iteration, model)

    for iteration in range(1, training.iterations + 1):
        clock.begin()
        worker.iterate()
        if iteration % LOOK_EVERY == 0:
            leave(iteration)
    clock.flush()
    leave(training.iterations)
    if looked_at:
        looks.end(folder / LOOKS)


def _exchange(options: argparse.Namespace, model: nn.Module, inner: torch.optim.Optimizer) -> Exchange:
    """Join the job. Raises SaspError."""
    who = Membership(
        options.rank, options.workers, _address(options), options.training.scheme, options.training.ways,
        options.chunk_bytes, PATIENCE_SECONDS, TOKEN,
    )  # fmt: skip
    if options.transport == "server":
        return over_server(model, inner, who, record=options.record)
    os.environ["GLOO_SOCKET_IFNAME"] = options.interface
    dist.init_process_group(
        "gloo", init_method=f"tcp://{options.at}", rank=options.rank, world_size=options.workers,
        timeout=timedelta(seconds=PATIENCE_SECONDS),
    )  # fmt: skip
    return over_ranks(model, inner, who, record=options.record)


def _address(options: argparse.Namespace) -> tuple[str, int]:
    address, _, port = options.at.rpartition(":")
    return address, int(port)


def _warm_up(task: Task, options: argparse.Namespace) -> None:
    """An iteration that does not count: memory and code of the first real one are there then."""
    batch = next(task.data(options.seed, options.rank, options.workers).batches)
    task.loss(task.seeded_model(options.seed), batch).backward()


def _start(meeting: Meeting, rank: int) -> float:
    """Say that this worker is ready, and wait for the start: when that is, by the monotonic clock."""
    begin = meeting.join(f"worker{rank}").monotonic
    time.sleep(max(0.0, begin - time.monotonic()))
    return begin


if __name__ == "__main__":
    sys.exit(main())

"""A part of a PyTorch job on one host: the parameter server, or a worker that trains and writes down how it went.

Accuracy is measured after everybody's training, on copies of worker 0's parameters as they were: looking must cost no
time, and must not make a decoupled worker wait. So a decoupled worker's copy lacks what is still on its way; the last
one is flushed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

import sasp
from evaluation.pytorch.digits import Digits, accuracy, digits
from evaluation.sasp import models
from evaluation.sasp.request import FAMILIES, Point, WorkerResult, name_of
from sasp.server.server import serve
from topologies.trainer.results import write_whole
from topologies.trainer.start import Meeting

PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.05
TOKEN = "of-this-arm"  # noqa: S105 (the network is the lab's own; the server asks for one off loopback)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command_line = argparse.ArgumentParser(prog="python -m evaluation.sasp.job", description=__doc__)
    command_line.add_argument(
        "--server", required=True, metavar="ADDRESS:PORT", help="where the parameter server listens"
    )
    command_line.add_argument("--workers", type=int, required=True)
    command_line.add_argument("--scheme", required=True)
    command_line.add_argument("--rank", type=int, help="the rank of a worker; without it this process is the server")
    command_line.add_argument("--family", choices=FAMILIES)
    command_line.add_argument("--seed", type=int, default=0)
    command_line.add_argument("--iterations", type=int)
    command_line.add_argument("--batch", type=int)
    command_line.add_argument("--learning-rate", type=float)
    command_line.add_argument("--chunk-bytes", type=int, help="the size of SaSP's chunks")
    command_line.add_argument("--meet", type=Path, help="the folder in which the start is announced")
    command_line.add_argument("--out", type=Path, help="the file for a worker's result")
    return command_line


def main() -> int:
    """0 done, 1 failed."""
    options = parser().parse_args()
    torch.set_num_threads(1)
    address, _, port = options.server.rpartition(":")
    try:
        if options.rank is None:
            scheme = sasp.parse(options.scheme)
            serve(address, int(port), options.workers, scheme, token=TOKEN, patience=PATIENCE_SECONDS)
        else:
            result = train(options, (address, int(port)))
            write_whole(options.out, json.dumps(asdict(result)))
    except sasp.SaspError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def train(options: argparse.Namespace, server: tuple[str, int]) -> WorkerResult:
    """A worker's part. Raises SaspError."""
    data = digits(options.seed, options.rank, options.workers)
    model = models.make(options.family, options.seed)
    _warm_up(models.make(options.family, options.seed), data, options.batch)
    inner = models.optimizer(model.parameters(), options.learning_rate)
    model, optimizer = sasp.join(
        model, inner, server=server, rank=options.rank, scheme=options.scheme, token=TOKEN,
        chunk_bytes=options.chunk_bytes, patience=PATIENCE_SECONDS,
    )  # fmt: skip
    draw = models.draws(options.seed, options.rank)
    looks: list[tuple[float, int, list[torch.Tensor]]] = []
    begin = _start(Meeting(options.meet), options.rank)
    computing = 0.0
    for iteration in range(1, options.iterations + 1):
        processor = time.thread_time()
        models.loss(model, data, options.batch, draw).backward()
        computing += time.thread_time() - processor
        optimizer.step()
        if options.rank == 0 and iteration % models.LOOK_EVERY == 0:
            looks.append(
                (time.monotonic() - begin, iteration, [parameter.detach().clone() for parameter in model.parameters()])
            )
    optimizer.flush()
    seconds = time.monotonic() - begin
    looks.append((seconds, options.iterations, [parameter.detach().clone() for parameter in model.parameters()]))
    optimizer.close()
    if options.rank == 0:
        _let_others_end(options.out.parent, options.workers)
    return WorkerResult(options.rank, options.iterations, seconds, computing, _points(model, data, looks))


def _warm_up(model: nn.Module, data: Digits, batch: int) -> None:
    """An iteration that does not count: memory and code of the first real one are there then."""
    nn.functional.cross_entropy(model(data.pictures[:batch]), data.labels[:batch]).backward()


def _start(meeting: Meeting, rank: int) -> float:
    """Say that this worker is ready, and wait for the start: when that is, by the monotonic clock."""
    begin = meeting.join(f"worker{rank}").monotonic
    time.sleep(max(0.0, begin - time.monotonic()))
    return begin


def _let_others_end(folder: Path, workers: int) -> None:
    """Until their results are there: who is still training needs the processors that this one would use."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and not all((folder / name_of(rank)).exists() for rank in range(1, workers)):
        time.sleep(_LOOK_SECONDS)


def _points(model: nn.Module, data: Digits, looks: list[tuple[float, int, list[torch.Tensor]]]) -> tuple[Point, ...]:
    points = []
    for seconds, iteration, parameters in looks:
        with torch.no_grad():
            for mine, then in zip(model.parameters(), parameters, strict=True):
                mine.copy_(then)
        points.append((seconds, iteration, accuracy(model, data)))
    return tuple(points)


if __name__ == "__main__":
    sys.exit(main())

"""Processes that the calibration starts: ``python -m deepprophet.device.probe WHAT ...``.

``alone THREADS DEVICE``: reads lines, each a model's name and seconds, and trains each for so long in a process of its
own, whose memory is as of one that just began; a JSON line a model: what an iteration takes, and its bytes on new
pages. ``neighbour THREADS``: trains the model whose name it reads, until it reads another or REST, or its input ends.
Both tell a line as soon as they hear.
``overlap THREADS RANK WORLD FILE NAME...``: what iterations take without and with all-reduces beside them, a JSON line
a model, from rank 0.
``wrapping THREADS NAME...``: what DistributedDataParallel adds to a worker alone, a JSON line a model. ``collective
RANK WORLD FILE``: what an all-reduce over this host's loopback takes, a JSON line a size, from rank 0.
"""

from __future__ import annotations

import json
import os
import resource
import select
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from deepprophet.device.calibration_set import Exercise, exercises
from deepprophet.device.loop import WARM_ITERATIONS, iteration, timed

CPU = torch.device("cpu")
SIZES = (4 * 1024, 64 * 1024, 2**19, 2**21, 2**23, 25 * 2**20)
MIN_SAMPLES, MAX_SAMPLES, SECONDS_A_SIZE = 7, 200, 0.5
OVERLAP_BYTES, OVERLAP_ROUNDS, QUIET_SECONDS = 8 * 2**20, 60, 0.3
"""What is exchanged beside iterations, how often, and for how long iterations are timed without that."""

PATIENCE = timedelta(seconds=60)
REST = "-"


def main(arguments: list[str]) -> int:
    """Be one of the processes."""
    what, *rest = arguments
    if what == "alone":
        torch.set_num_threads(int(rest[0]))
        _alone({exercise.name: exercise for exercise in exercises()}, torch.device(rest[1]))
    elif what == "neighbour":
        torch.set_num_threads(int(rest[0]))
        _neighbour({exercise.name: exercise for exercise in exercises()})
    elif what == "overlap":
        torch.set_num_threads(int(rest[0]))
        chosen = [exercise for exercise in exercises() if exercise.name in rest[4:]]
        _overlap(int(rest[1]), int(rest[2]), Path(rest[3]), chosen)
    elif what == "wrapping":
        torch.set_num_threads(int(rest[0]))
        _wrapping([exercise for exercise in exercises() if exercise.name in rest[1:]])
    else:
        torch.set_num_threads(1)
        _collective(int(rest[0]), int(rest[1]), Path(rest[2]))
    return 0


def _alone(known: dict[str, Exercise], device: torch.device) -> None:
    _tell({"ready": True})
    for line in sys.stdin:
        name, seconds = line.split()
        child = os.fork()
        if not child:
            chosen = known[name]
            _tell(_whole(iteration(chosen.subject(), chosen.optimizer, device), device, float(seconds)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{name} could not be trained: it ended with {os.waitstatus_to_exitcode(status)}")


def _whole(run: Callable[[], None], device: torch.device, seconds: float) -> dict[str, float]:
    """What an iteration takes, bytes on pages that it is the first to touch, and its share of a processor's time."""
    pages: list[int] = []
    used, began = time.process_time(), time.perf_counter()

    def counted() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        run()
        pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    samples = timed(counted, device, seconds=seconds)
    share = (time.process_time() - used) / (time.perf_counter() - began)
    fresh = statistics.median(pages[WARM_ITERATIONS:]) * resource.getpagesize()
    on_cpu = device.type == "cpu"
    return {
        "seconds": statistics.median(samples),
        "fresh": fresh if on_cpu else 0.0,
        # A GPU's work is not this process's.
        "share": min(share, 1.0) if on_cpu else 1.0,
    }


def _neighbour(known: dict[str, Exercise]) -> None:
    run: Any = None
    _tell({"ready": True})
    while True:
        if run is None or select.select([sys.stdin], [], [], 0)[0]:
            name = sys.stdin.readline().strip()
            if not name:
                return
            if name == REST:
                run = None
                _tell({"running": None})
                continue
            chosen = known[name]
            run = iteration(chosen.subject(), chosen.optimizer, CPU)
            run()
            _tell({"running": name})
        run()


def _wrapping(chosen: list[Exercise]) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1, timeout=PATIENCE)
        for exercise in chosen:
            bare, wrapped = exercise.subject(), exercise.subject()
            runs = (
                iteration(bare, exercise.optimizer, CPU),
                iteration(wrapped, exercise.optimizer, CPU, DistributedDataParallel(wrapped.model)),
            )
            # In turns, so that what else the machine does touches both.
            rounds = [[statistics.median(timed(run, CPU, seconds=0.15)) for run in runs] for _ in range(5)]
            extra = statistics.median(after - before for before, after in rounds)
            sizes = [p.numel() * p.element_size() for p in wrapped.model.parameters() if p.requires_grad]
            whole = statistics.median(before for before, _ in rounds)
            _tell(
                {"name": exercise.name, "parameters": len(sizes), "bytes": sum(sizes), "extra": extra, "whole": whole}
            )
        dist.destroy_process_group()


def _collective(rank: int, world: int, store: Path) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=PATIENCE)
    for size in SIZES:
        values = torch.ones(size // 4)
        for _ in range(3):
            dist.all_reduce(values)
            values.fill_(1.0)
        samples: list[float] = []
        work: list[float] = []
        began_all = time.perf_counter()
        again = torch.ones(1)
        while again.item():
            used, began = time.process_time(), time.perf_counter()
            dist.all_reduce(values)
            samples.append(time.perf_counter() - began)
            work.append(time.process_time() - used)
            values.fill_(1.0)
            # All ranks stop after the same number: who decided for itself would leave others waiting.
            early = len(samples) < MIN_SAMPLES or time.perf_counter() - began_all < SECONDS_A_SIZE
            again.fill_(float(early and len(samples) < MAX_SAMPLES))
            dist.broadcast(again, 0)
        if rank == 0:
            _tell({"bytes": size, "seconds": sorted(samples), "work": statistics.median(work)})
    dist.destroy_process_group()


def _overlap(rank: int, world: int, store: Path, chosen: list[Exercise]) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=PATIENCE)
    values = torch.ones(OVERLAP_BYTES // 4)
    for exercise in chosen:
        run = iteration(exercise.subject(), exercise.optimizer, CPU)
        dist.barrier()
        quiet = statistics.median(timed(run, CPU, seconds=QUIET_SECONDS))
        dist.barrier()
        busy, sending = _beside_sending(run, values)
        dist.barrier()
        if rank == 0:
            handled = OVERLAP_ROUNDS * OVERLAP_BYTES * 2 * (world - 1) / world
            _tell({"name": exercise.name, "quiet": quiet, "busy": busy, "sending": sending, "bytes": handled})
    dist.destroy_process_group()


def _beside_sending(run: Callable[[], None], values: torch.Tensor) -> tuple[float, float]:
    """Seconds of an iteration while a thread exchanges without a pause, and of all that it exchanges."""

    def send() -> None:
        for _ in range(OVERLAP_ROUNDS):
            dist.all_reduce(values)
            values.fill_(1.0)

    began = time.perf_counter()
    thread = threading.Thread(target=send)
    thread.start()
    samples: list[float] = []
    while not samples or thread.is_alive():
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    # The last iteration went on when nothing was sent any more.
    thread.join()
    return statistics.median(samples[:-1] or samples), time.perf_counter() - began


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

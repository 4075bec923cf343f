"""Times one rank of a real training job, or a single worker: ``python -m evaluation.deepprophet.rank``.

It needs PyTorch. Rank 0 writes one JSON document with the seconds of each iteration, without the first iterations.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from deepprophet.device.loop import iteration, timed
from evaluation.deepprophet.subjects import made

PATIENCE = timedelta(seconds=300)
WARM_ITERATIONS = 4
LEAST_ITERATIONS, MOST_ITERATIONS = 8, 200
CPU = torch.device("cpu")


def main(arguments: list[str] | None = None) -> None:
    """Train, write how long iterations take, and end the process."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("model")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--master", default="")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(options.rank)
    training = made(options.model, options.batch_size)
    if options.world == 1:
        seconds_of_iterations = timed(iteration(training, "sgd", CPU), CPU, seconds=options.seconds)
    else:
        dist.init_process_group(
            "gloo", init_method=options.master, rank=options.rank, world_size=options.world, timeout=PATIENCE
        )
        run = iteration(training, "sgd", CPU, DistributedDataParallel(training.model))
        seconds_of_iterations = _together(run, options.seconds)
        dist.barrier()
    if options.rank == 0:
        sys.stdout.write(json.dumps({"seconds": seconds_of_iterations}) + "\n")
        sys.stdout.flush()
    # Gloo's threads sometimes abort a rank that destroys its process group while others exit, so this ends at once.
    os._exit(0)


def _together(run: object, seconds: float) -> list[float]:
    """Runs as many iterations on all ranks as rank 0 has time for. Returns the seconds of each."""
    assert callable(run)
    warm = []
    for _ in range(WARM_ITERATIONS):
        began = time.perf_counter()
        run()
        warm.append(time.perf_counter() - began)
    wanted = seconds / max(statistics.median(warm[1:]), 1e-6)
    count = torch.tensor([min(max(round(wanted), LEAST_ITERATIONS), MOST_ITERATIONS)])
    dist.broadcast(count, 0)
    measured = []
    for _ in range(int(count.item())):
        began = time.perf_counter()
        run()
        measured.append(time.perf_counter() - began)
    return measured


if __name__ == "__main__":
    main()

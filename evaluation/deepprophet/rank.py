"""Times one rank of a real training job, or a single worker: ``python -m evaluation.deepprophet.rank``.

It needs PyTorch. Rank 0 writes one JSON document: ``seconds`` of each iteration, without the first iterations, and
``sent``, the bytes that all ranks sent for one, headers and acknowledgements included (0 for a worker alone).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from deepprophet.device.loop import iteration, timed
from deepprophet.graph.subject import Subject
from deepprophet.predict import mapping
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
    parser.add_argument("--mapping", type=Path, help="how the model is spread; otherwise each rank has a copy")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    spec = mapping.PLAIN if options.mapping is None else mapping.read(options.mapping)
    # Ranks that hold a model together have the same weights and examples.
    torch.manual_seed(options.rank // spec.ranks_of_a_copy)
    training = made(options.model, options.batch_size)
    sent = 0.0
    if options.world == 1:
        run = iteration(training, "sgd", CPU) if options.mapping is None else _mapped(training, spec)
        seconds_of_iterations = timed(run, CPU, seconds=options.seconds)
    else:
        dist.init_process_group(
            "gloo", init_method=options.master, rank=options.rank, world_size=options.world, timeout=PATIENCE
        )
        if options.mapping is None:
            run = iteration(training, "sgd", CPU, DistributedDataParallel(training.model))
        else:
            run = _mapped(training, spec, options.rank, options.world)
        seconds_of_iterations, sent = _together(run, options.seconds)
    if options.rank == 0:
        sys.stdout.write(json.dumps({"seconds": seconds_of_iterations, "sent": sent}) + "\n")
        sys.stdout.flush()
    # Gloo's threads sometimes abort a rank that destroys its process group while others exit, so this ends at once.
    os._exit(0)


def _mapped(training: Subject, spec: mapping.MappingSpec, rank: int = 0, world: int = 1) -> Callable[[], None]:
    from evaluation.deepprophet.plans.training import iteration_of  # noqa: PLC0415 - loads much of torch.distributed

    return iteration_of(training, spec, rank, world)


def _together(run: Callable[[], None], seconds: float) -> tuple[list[float], float]:
    """Runs as many iterations on all ranks as rank 0 has time for.

    Returns the seconds of each, and the bytes that all ranks sent for one.
    """
    warm = []
    for _ in range(WARM_ITERATIONS):
        began = time.perf_counter()
        run()
        warm.append(time.perf_counter() - began)
    wanted = seconds / max(statistics.median(warm[1:]), 1e-6)
    count = torch.tensor([min(max(round(wanted), LEAST_ITERATIONS), MOST_ITERATIONS)])
    dist.broadcast(count, 0)
    measured = []
    before = _sent_bytes()
    for _ in range(int(count.item())):
        began = time.perf_counter()
        run()
        measured.append(time.perf_counter() - began)
    dist.barrier()
    sent = torch.tensor([_sent_bytes() - before], dtype=torch.float64)
    dist.all_reduce(sent)
    dist.barrier()
    return measured, sent.item() / len(measured)


def _sent_bytes() -> int:
    """Returns the bytes that this rank's interface has sent so far."""
    return int(Path(f"/sys/class/net/{os.environ['GLOO_SOCKET_IFNAME']}/statistics/tx_bytes").read_text())


if __name__ == "__main__":
    main()

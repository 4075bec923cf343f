"""A training of scikit-learn's handwritten digits on several hosts with PyTorch's DistributedDataParallel.

A script as its user would have it: it takes rank and peers from the environment, as torchrun sets it, and knows of no
network, scheduler or experiment. Its one word for the host's agent is the callback (``Watch``).
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from evaluation.pytorch.digits import CLASSES, PIXELS, SIDE, accuracy, digits
from host_reporter.integrations.torch import Watch

MOMENTUM = 0.9
SETTLE_SECONDS = 0.5
"""Until Gloo's threads have freed what they sent. They need Python's lock for it, and who ends PyTorch's process group
holds that while it waits for them: now and then a rank on a busy processor would never end, or abort."""


def make(model: str, width: int) -> nn.Module:
    """An ``mlp`` with two hidden layers of ``width``, or a ``cnn`` with two convolutions to so many channels."""
    if model == "mlp":
        return nn.Sequential(
            nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
        )
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * width, 64), nn.ReLU(), nn.Linear(64, CLASSES),
    )  # fmt: skip


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("mlp", "cnn"), required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="pictures a rank and iteration")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--look-every", type=int, default=2, help="iterations from one held-out accuracy to the next")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    data = digits(options.seed, rank, distributed.get_world_size())
    torch.manual_seed(options.seed)
    model = DistributedDataParallel(make(options.model, options.width))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=MOMENTUM)
    draw = torch.Generator().manual_seed(1000 * options.seed + rank)

    with Watch(optimizer) as watch:
        for iteration in range(1, options.iterations + 1):
            chosen = torch.randint(0, len(data.labels), (options.batch,), generator=draw)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data.pictures[chosen]), data.labels[chosen]).backward()
            optimizer.step()
            if rank == 0 and iteration % options.look_every == 0:
                watch.metric(accuracy(model.module, data))
    distributed.barrier()
    time.sleep(SETTLE_SECONDS)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()

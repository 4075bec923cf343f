"""A plain PyTorch loop with DDP, whose every rank prints its step, as most scripts that people write themselves."""

from __future__ import annotations

import argparse
import logging
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import OUTPUT, Series, Truth

EPOCHS = 3
STEPS = 10
BATCH = 32
EVERY = 5


def main() -> None:
    """Print the loss of every fifth step, and log the held-out accuracy of each epoch to standard error.

    ``--log-dir`` says that torchrun keeps the output of each rank in that folder, and that its own has all of them.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-dir")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    points, labels = map(torch.from_numpy, blobs(STEPS * BATCH, seed=1 + rank))
    test_points, test_labels = map(torch.from_numpy, blobs(256, seed=9))
    losses = Series("Loss", "min", EPOCHS * STEPS)
    run = Series("accuracy", "max", EPOCHS * STEPS)
    epochs = Series("accuracy", "max", EPOCHS, "epochs")
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            part = slice(step * BATCH, (step + 1) * BATCH)
            loss = torch.nn.functional.cross_entropy(model(points[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if (step + 1) % EVERY == 0:
                print(f"Epoch [{epoch + 1}/{EPOCHS}] Step [{step + 1}/{STEPS}] Loss: {loss.item():.4f}", flush=True)
                losses.add(epoch * STEPS + step + 1, loss.item())
        accuracy = float((model(test_points).argmax(1) == test_labels).float().mean())
        if rank == 0:
            logging.info("epoch %d: held-out accuracy %.2f%%", epoch + 1, 100 * accuracy)
            run.add((epoch + 1) * STEPS, accuracy)
            epochs.add(epoch + 1, accuracy)
    dist.destroy_process_group()
    if rank == 0 and options.log_dir:
        folder = f"{options.log_dir}/run/attempt_0/0"
        Truth(run, {OUTPUT: losses, f"{folder}/stdout.log": losses, f"{folder}/stderr.log": epochs}).write()
    elif rank == 0:
        Truth(run, {OUTPUT: losses, "stderr.log": epochs}).write()


if __name__ == "__main__":
    main()

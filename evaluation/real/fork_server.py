"""The launcher of real trainings' ranks: PyTorch and the data set are loaded once, a rank on a host is a fork of it."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from evaluation.real import rank, training
from topologies.fork_server import launch


def main() -> None:
    """Load all that a rank loads, then take orders."""
    load_digits()
    # Made for what the first one loads, which takes seconds.
    torch.optim.SGD(training.make("mlp", 4).parameters(), lr=1.0)
    launch({"job": rank.main})


if __name__ == "__main__":
    main()

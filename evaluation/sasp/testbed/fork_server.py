"""The launcher of PyTorch jobs on the testbed's hosts: PyTorch is loaded once, and a process on a host is a fork of it.

It runs in the environment that has PyTorch, with one thread a process: hosts share the emulator's processors.
"""

from __future__ import annotations

import torch

from evaluation.sasp.study.tasks import TASKS
from evaluation.sasp.testbed import job
from sasp.exchange import rules
from sasp.training import wrapping
from topologies.fork_server import launch


def main() -> None:
    """Load all that a job loads, then take orders."""
    # Made for what the first one loads, which takes seconds.
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    rules.describe(optimizer)
    assert wrapping.over_server is not None
    for task in TASKS.values():
        task.data(0, 0, 1)
    launch({"job": job.main})


if __name__ == "__main__":
    main()

"""Some ranks that a launcher starts, each of which descends on a parabola and prints its step and loss."""

from __future__ import annotations

import os
import random
import sys
import time

from evaluation.logs.truth import Series, Truth

STEPS = 12
VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""What Open MPI, MPICH and Slurm call the rank."""


def main() -> None:
    """Print each step on standard output, and the end on standard error."""
    rank = next(int(os.environ[name]) for name in VARIABLES if name in os.environ)
    noise = random.Random(rank)  # noqa: S311
    run = Series("loss", "min", STEPS)
    place = 4.0
    for step in range(1, STEPS + 1):
        place *= 0.8 + 0.05 * noise.random()
        print(f"step {step}/{STEPS} loss {place**2:.4f}", flush=True)
        run.add(step, place**2)
        time.sleep(0.02)
    sys.stderr.write(f"rank {rank} has ended\n")
    if rank == 0:
        Truth(run).write()


if __name__ == "__main__":
    main()

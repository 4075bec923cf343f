"""What stands for a training in a test of the whole: it writes a log as Megatron-LM does, and ends well.

By itself, on the standard library, for whichever Python and user runs it: ``python3 training.py FILE [VARIABLE]``
writes 20 iterations, then waits for FILE, and writes the last 20. VARIABLE is the one with this process's rank: ranks
that are not 0 write nothing, and end first.
"""

import os
import sys
import time
from pathlib import Path

ITERATIONS = 40
HALF = 20


def main() -> None:
    """Write the log."""
    rank = os.environ[sys.argv[2]] if len(sys.argv) > 2 else "0"
    if rank != "0":
        time.sleep(1.0)
        return
    write(1, HALF)
    deadline = time.monotonic() + 60
    while not Path(sys.argv[1]).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    write(HALF + 1, ITERATIONS)


def write(first: int, last: int) -> None:
    """Write the lines of these iterations, a few each second."""
    for iteration in range(first, last + 1):
        sys.stdout.write(
            f" iteration {iteration:8d}/{ITERATIONS:8d} | consumed samples: {iteration * 64:12d} "
            "| elapsed time per iteration (ms): 20.0 | learning rate: 1.500E-04 | global batch size:    64 "
            f"| lm loss: {4 / iteration:.6E} | loss scale: 1.0 | grad norm: 1.234 "
            "| number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        sys.stdout.flush()
        time.sleep(0.02)


if __name__ == "__main__":
    main()

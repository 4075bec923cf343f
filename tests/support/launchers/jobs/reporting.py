"""What stands for a training that reports by the two-line helper in each of its ranks, as people write it.

``python reporting.py VARIABLE [NAME]``: VARIABLE is the one that has this process's rank. The higher the rank, the
earlier it ends. NAME is given to ``progress``, which takes the job from the environment otherwise.
"""

from __future__ import annotations

import os
import sys
import time

from host_reporter.training.progress_file import progress

RANKS = 3


def main() -> None:
    """Report one iteration, which tells the rank, and end."""
    rank = int(os.environ[sys.argv[1]])
    report = progress(*sys.argv[2:])
    report.report(iteration=100 + rank, metric=0.5)
    report.flush(5.0)
    time.sleep(0.3 * (RANKS - 1 - rank))
    report.end()


if __name__ == "__main__":
    main()

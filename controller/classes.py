"""From an ordering to at most K classes, because a switch has few queues.

``top`` [known] is Sincronia's way (SIGCOMM 2018, doi:10.1145/3230543.3230569): the first K - 1 bands have a
class of their own, all others share the last. Cost O(n).
"""

from __future__ import annotations

from controller.model import Ordering


def top(ordering: Ordering, classes: int) -> dict[str, int]:
    """Class of each job, 0 served first; ``classes`` is K >= 1."""
    if classes < 1:
        raise ValueError(f"classes: {classes}; there must be at least 1")
    return {job: min(position, classes - 1) for position, band in enumerate(ordering.bands) for job in band}

"""From the work that each job is expected to need to an order: BSSI on expected loads, steadied by a margin.

[ours] Shortest first is right for one link; jobs of several hosts meet at many, and a job that is short at its own
bottleneck may stand in the way of many others at another port. Sincronia's BSSI (``controller.bssi``) weighs that. An
order that stands is kept until another is better by ``margin`` of the mean time to its jobs' ends: expectations waver,
and every move costs rules and marks.

Cost: one BSSI a tier and two sums of completion times, O(n (n + m)) for n jobs and m ports.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controller.bssi import bssi, completion_times
from controller.loads import Floats, LoadMatrix

Order = tuple[int, ...]
"""Positions of jobs, first served first."""


def by_port(loads: LoadMatrix, weights: Floats, tiers: Sequence[int], before: Order | None, margin: float) -> Order:
    """Order jobs by tier (least first), and within a tier by their expected ``loads`` (seconds a port).

    ``before`` is the order that stands, of the very same jobs; None: there is none.
    """
    tier = np.array(tiers, dtype=np.int64)
    best: list[int] = []
    for one in np.unique(tier).tolist():
        members = tier == one
        order = bssi(loads.times(members.astype(float)), weights).order
        best += [position for position in order if members[position]]
    if before is not None and np.all(np.diff(tier[list(before)]) >= 0):
        stands, better = (_total(loads, weights, order) for order in (before, best))
        if stands <= better * (1.0 + margin):
            return before
    return tuple(best)


def _total(loads: LoadMatrix, weights: Floats, order: Sequence[int]) -> float:
    return float(weights @ completion_times(loads, [[position] for position in order]))

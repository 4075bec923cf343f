"""Chooses the jobs that fit into an epoch by the LP of Sincronia online (see ``controller.policies.sincronia``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from controller.ordering.loads import Floats, LoadMatrix


def fitting(left: LoadMatrix, weight: Floats, seconds: float) -> NDArray[np.bool_]:
    """Returns which jobs fit into ``seconds``, by the LP: most weight with no port loaded for longer. Shape (jobs,).

    A job fits where the LP takes at least half of it. So the chosen jobs need at most twice the time at any port.
    """
    if left.jobs == 0:
        return np.zeros(0, dtype=bool)
    rows = csr_array((left.seconds, left.port, left.start), shape=(left.jobs, left.ports))
    # A job that does not fit alone cannot be chosen.
    upper = np.where(left.bottlenecks() <= seconds, 1.0, 0.0)
    if not (upper > 0).any():
        return np.zeros(left.jobs, dtype=bool)
    scale = weight.max()
    solution = linprog(
        -weight / scale,
        A_ub=rows.T.tocsr() / seconds,
        b_ub=np.ones(left.ports),
        bounds=np.stack((np.zeros(left.jobs), upper), axis=1),
        method="highs",
    )
    if solution.x is None:
        # The solver fails only for numbers of extreme sizes. Then every job fits that fits alone.
        return upper > 0
    fits: NDArray[np.bool_] = solution.x >= 0.5
    return fits

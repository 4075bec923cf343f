"""The Gittins index of a job of uncertain length: the best chance of success per unit of work to be spent on it.

[known] J. Gittins: Bandit Processes and Dynamic Allocation Indices, J. R. Statist. Soc. B 41(2), 1979,
doi:10.1111/j.2517-6161.1979.tb01068.x: to minimise the mean time to success on one server, serve the highest index

    G = max over d of  P(L <= d) / E[min(L, d)],        L = the work left until success.

For a known L that is 1 / L (shortest remaining first); for a heavy-tailed L it falls as work is spent in vain (least
attained service); what lies between is right for what is known. Cost O(n log n) for n draws of L.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def index(left: Array, weight: Array) -> float:
    """The index per unit of ``left``: draws (D,) above 0, infinite: never; weights (D,) that sum to 1.

    0 if no draw is finite.
    """
    order = np.argsort(left, kind="stable")
    finite = order[: int(np.isfinite(left).sum())]
    if not len(finite):
        return 0.0
    return float(indices(left[None, finite], weight[None, finite])[0])


def indices(left: Array, weight: Array) -> Array:
    """The index of each row of finite draws (J, D), ascending, D > 0; what weights lack to a sum of 1 never comes."""
    success = np.cumsum(weight, axis=1)
    spent = np.cumsum(weight * left, axis=1) + (1.0 - success) * left
    best: Array = (success / spent).max(axis=1)
    return best

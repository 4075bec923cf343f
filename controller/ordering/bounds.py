"""Lower bounds, over all orders, of the weighted sum of V. The V of a job is when the last of its ports has served it.

There are three. Each is at least as tight as the one before it, and takes longer:

* ``dual`` is the bound of BSSI's run (see ``controller.ordering.bssi``), or the sum of w_j gamma_j where that is more.
* ``linear`` is the LP over completion times C_j with the parallel inequalities at each port i and set S of its jobs,
  sum d_ij C_j >= (sum d_ij^2 + (sum d_ij)^2) / 2 over j in S. [known] M. Queyranne: Structure of a simple scheduling
  polyhedron, Mathematical Programming 58, 1993, doi:10.1007/BF01581271: these inequalities describe one port exactly,
  and the one that a point violates most belongs to a prefix of the jobs sorted by C_j. So each round adds the
  inequalities that are violated most, and HiGHS solves the LP again. The dual's thetas are a feasible dual of this LP.
* ``exact`` is the value of the best order, for few jobs. The V of a job depends only on the set of jobs up to it, so a
  dynamic program goes through sets instead of orders: O(2^n n m).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from controller.ordering.bssi import bssi
from controller.ordering.loads import Floats, LoadMatrix

Bound = Callable[[LoadMatrix, Floats], float]
"""A lower bound in weighted seconds, from the loads and from the weights of the jobs."""

MAX_EXACT_JOBS = 12
"""``exact`` takes at most this many jobs, because its time doubles with each job."""

_ROUNDS = 100
"""``linear`` solves the LP at most this many times."""

_VIOLATED = 1e-7
"""An inequality counts as violated when this part of its right side is missing."""

_GAINED = 1e-7
"""``linear`` stops when a round has raised the bound by less than this part."""


def dual(loads: LoadMatrix, weights: Floats) -> float:
    """Returns the bound of BSSI's run, in weighted seconds."""
    return bssi(loads, weights).lower_bound


def linear(loads: LoadMatrix, weights: Floats, *, rounds: int = _ROUNDS) -> float:
    """Returns the LP's bound, in weighted seconds, which is never below ``dual``'s.

    The result after fewer ``rounds`` is a bound as well. ``weights`` are above 0, one for each job.
    Raises ValueError where there are not as many weights as jobs.
    """
    lower = dual(loads, weights)
    gamma = loads.bottlenecks()
    if lower == 0.0:
        return 0.0
    # Numbers near 1 keep the solver's tolerances meaningful.
    unit, most = float(gamma.max()), float(weights.max())
    entries = np.argsort(loads.port, kind="stable")
    job, seconds = loads.row_of_entry()[entries], loads.seconds[entries] / unit
    ends = np.cumsum(np.bincount(loads.port, minlength=loads.ports))
    ports = [(job[a:b], seconds[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True) if b - a > 1]
    bounds = np.stack((gamma / unit, np.full(loads.jobs, np.inf)), axis=1)
    rows: list[csr_array] = []
    sides: list[float] = []
    finish = gamma / unit
    best, value = lower, 0.0
    for _ in range(rounds):
        cuts = [cut for port_jobs, load in ports if (cut := _most_violated(port_jobs, load, finish)) is not None]
        if not cuts:
            break
        rows.append(_rows([cut[:2] for cut in cuts], loads.jobs))
        sides += [cut[2] for cut in cuts]
        solved = linprog(weights / most, A_ub=-vstack(rows), b_ub=-np.array(sides), bounds=bounds, method="highs-ds")
        if solved.x is None:
            break  # The solver cannot handle numbers of such sizes; the bound so far holds.
        finish = solved.x
        before, value = value, float(solved.fun) * unit * most
        best = max(best, value)
        if lower < value < before * (1 + _GAINED):
            break
    return best


def exact(loads: LoadMatrix, weights: Floats) -> float:
    """Returns the least weighted sum of V over all orders, in weighted seconds.

    Raises ValueError for more than ``MAX_EXACT_JOBS`` jobs.
    """
    n = loads.jobs
    if n > MAX_EXACT_JOBS:
        raise ValueError(f"there are {n} jobs; the exact bound can be computed for at most {MAX_EXACT_JOBS}")
    array = loads.to_array()
    best = np.zeros(1 << n)
    for members in range(1, 1 << n):
        jobs = [j for j in range(n) if members >> j & 1]
        total = array[jobs].sum(axis=0)
        best[members] = min(
            best[members ^ 1 << j] + float(weights[j]) * float(total[array[j] > 0].max(initial=0.0)) for j in jobs
        )
    return float(best[-1])


BOUNDS: Mapping[str, Bound] = {"dual": dual, "linear": linear, "exact": exact}
"""The bounds by the names that ``trainyard order --bound`` takes."""


def _most_violated(jobs: np.ndarray, load: Floats, finish: Floats) -> tuple[np.ndarray, Floats, float] | None:
    """Returns the prefix of a port's jobs, by completion time, whose inequality is violated most, or None."""
    order = np.argsort(finish[jobs], kind="stable")
    jobs, load = jobs[order], load[order]
    total = np.cumsum(load)
    needed = (np.cumsum(load * load) + total * total) / 2
    lacking = needed - np.cumsum(load * finish[jobs])
    worst = int(lacking.argmax())
    if lacking[worst] <= _VIOLATED * needed[worst]:
        return None
    return jobs[: worst + 1], load[: worst + 1], float(needed[worst])


def _rows(cuts: list[tuple[np.ndarray, Floats]], jobs: int) -> csr_array:
    start = np.concatenate(([0], np.cumsum([len(members) for members, _ in cuts])))
    members = np.concatenate([members for members, _ in cuts])
    return csr_array((np.concatenate([load for _, load in cuts]), members, start), shape=(len(cuts), jobs))

"""Lower bounds, over all orders, of the weighted sum of V (when the last of a job's own ports has served it).

Three, each at least as tight as the one before, and each dearer:

* ``dual``: from BSSI's own run (see ``controller.ordering.bssi``), or the sum of w_j gamma_j where that is more.
* ``linear``: the LP over completion times C_j with the parallel inequalities at each port i and set S of its jobs,
  sum d_ij C_j >= (sum d_ij^2 + (sum d_ij)^2) / 2 over j in S. [known] M. Queyranne: Structure of a simple scheduling
  polyhedron, Mathematical Programming 58, 1993, doi:10.1007/BF01581271: these describe one port exactly, and of a
  point that violates any, some prefix of the jobs sorted by C_j is violated most. So they are made as they are needed,
  and HiGHS solves what has been made so far. The dual's thetas are a feasible dual of this LP.
* ``exact``: the best order, for few jobs. What a job's V is depends only on the set of jobs up to it, so sets are
  gone through instead of orders: O(2^n n m).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from controller.ordering.bssi import bssi
from controller.ordering.loads import Floats, LoadMatrix

MAX_EXACT_JOBS = 12
_ROUNDS = 100
_VIOLATED = 1e-7
_GAINED = 1e-7


def dual(loads: LoadMatrix, weights: Floats) -> float:
    """The bound of BSSI's run, in weighted seconds."""
    return bssi(loads, weights).lower_bound


def linear(loads: LoadMatrix, weights: Floats, *, rounds: int = _ROUNDS) -> float:
    """The LP's bound, in weighted seconds; never below ``dual``'s. Stopped after some rounds it is a bound as well.

    ``weights`` are above 0, one a job. Raises ValueError where there are not as many weights as jobs.
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
        found = [cut for port_jobs, load in ports if (cut := _most_violated(port_jobs, load, finish)) is not None]
        if not found:
            break
        rows.append(_rows([cut[:2] for cut in found], loads.jobs))
        sides += [cut[2] for cut in found]
        solved = linprog(weights / most, A_ub=-vstack(rows), b_ub=-np.array(sides), bounds=bounds, method="highs-ds")
        if solved.x is None:
            break  # numbers of absurd sizes; what is known so far holds
        finish = solved.x
        before, value = value, float(solved.fun) * unit * most
        best = max(best, value)
        if lower < value < before * (1 + _GAINED):
            break
    return best


def exact(loads: LoadMatrix, weights: Floats) -> float:
    """The least weighted sum of V over all orders; ValueError for more than 12 jobs."""
    n = loads.jobs
    if n > MAX_EXACT_JOBS:
        raise ValueError(f"{n} jobs; all orders can be gone through for at most {MAX_EXACT_JOBS}")
    array = loads.to_array()
    best = np.zeros(1 << n)
    for members in range(1, 1 << n):
        jobs = [j for j in range(n) if members >> j & 1]
        total = array[jobs].sum(axis=0)
        best[members] = min(
            best[members ^ 1 << j] + float(weights[j]) * float(total[array[j] > 0].max(initial=0.0)) for j in jobs
        )
    return float(best[-1])


def _most_violated(jobs: np.ndarray, load: Floats, finish: Floats) -> tuple[np.ndarray, Floats, float] | None:
    """The prefix, by completion times, of a port's jobs whose inequality lacks most; None where all hold."""
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

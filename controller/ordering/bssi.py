"""BSSI, bottleneck - select - scale - iterate: the ordering kernel of Sincronia, with its dual bound.

[known] S. Agarwal, S. Rajakrishnan, A. Narayan, R. Agarwal, D. Shmoys, A. Vahdat: Sincronia: Near-Optimal
Network Design for Coflows, SIGCOMM 2018, doi:10.1145/3230543.3230569. Without release times the order is
within 4x of the optimal mean completion time under any rate allocation that keeps the order and wastes no
capacity; the scaling factors are a feasible dual, so the run itself yields a lower bound.

With n jobs and m ports it costs O(n (n + m)) in vector operations on the loads of one port at a time, and less where
jobs use few ports; port sums are updated, never added anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.model import Port
from controller.ordering.loads import Floats, Ints, LoadMatrix, summed

Loads = Sequence[Mapping[Port, float]]

_LONG_COLUMN = 256
"""Drop the jobs that have their place from columns with at least this many loads; for shorter ones it costs more."""
_SHORT_COLUMN = 32
"""Use plain numbers where no port is used by more jobs than this; they are faster than arrays."""
_MOST_THETA = 1e150
"""Limit the scaling factor to this: a smaller one is feasible too, and a larger one would overflow with a load."""
_DENSE = 0.25
"""Use whole rows and columns from this share of nonzero loads on; below it, lists of the nonzero loads are faster."""


@dataclass(frozen=True, slots=True)
class BssiResult:
    """``order``: positions in the input, first served first. ``lower_bound``: of the weighted *sum* of V, seconds."""

    order: tuple[int, ...]
    lower_bound: float


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The loads by port: those of port i stand at ``start[i]:start[i + 1]``, of later jobs before those of earlier."""

    start: list[int]
    job: Ints
    seconds: Floats

    @classmethod
    def of(cls, matrix: LoadMatrix) -> _Columns:
        """The columns of a matrix."""
        # A stable sort of the entries, last first, keeps each column's jobs in falling order.
        order = np.argsort(_narrow(matrix.port[::-1], matrix.ports), kind="stable")
        start = np.concatenate(([0], np.cumsum(np.bincount(matrix.port, minlength=matrix.ports))))
        return cls(start.tolist(), matrix.row_of_entry()[::-1][order], matrix.seconds[::-1][order])

    def only(self, alive: NDArray[np.bool_]) -> _Columns:
        """The same without the jobs that are not alive."""
        keep = alive[self.job]
        before = np.concatenate(([0], np.cumsum(keep)))
        return _Columns(before[self.start].tolist(), self.job[keep], self.seconds[keep])


def bssi(loads: Loads | LoadMatrix | Floats, weights: Sequence[float] | Floats) -> BssiResult:
    """Order jobs by their loads (seconds a port, as mappings, a matrix or an array (jobs, ports)) and their weights.

    Loads are 0 or more, weights above 0; zero loads may be left out. Raises ValueError where there are not as many
    weights as jobs.
    """
    if isinstance(loads, np.ndarray) and np.count_nonzero(loads) < _DENSE * loads.size:
        loads = LoadMatrix.dense(loads)
    elif not isinstance(loads, np.ndarray | LoadMatrix):
        loads = LoadMatrix.of(loads)
    n = len(loads) if isinstance(loads, np.ndarray) else loads.jobs
    weight = np.array(weights, dtype=float)
    if len(weight) != n:
        raise ValueError(f"{n} jobs but {len(weight)} weights")
    if isinstance(loads, LoadMatrix) and len(loads.port) > _DENSE * n * loads.ports:
        loads = loads.to_array()
    with np.errstate(all="ignore"):
        # The jobs that have no place yet keep what is left of their weight, the others' is infinite.
        if isinstance(loads, np.ndarray):
            gamma = loads.max(axis=1, initial=0.0)
            last_to_first, bound, left = _dense(loads, weight.copy(), int(np.count_nonzero(gamma)))
        else:
            gamma = loads.bottlenecks()
            columns = _Columns.of(loads)
            way = _short if max(np.diff(columns.start), default=0) <= _SHORT_COLUMN else _sparse
            last_to_first, bound, left = way(loads, columns, weight.copy(), int(np.count_nonzero(gamma)))
    # No load is left anywhere: who weighs least goes last; of equals the later one.
    rest = np.flatnonzero(left < np.inf)
    last_to_first += rest[np.lexsort((-rest, left[rest]))].tolist()
    return BssiResult(tuple(reversed(last_to_first)), max(bound, float(weight @ gamma)))


def _port_sums(matrix: LoadMatrix) -> Floats:
    """Seconds of all jobs at each port; -inf where nobody has any, so that it is never the bottleneck."""
    used = np.bincount(matrix.port, minlength=matrix.ports) > 0
    return np.where(used, summed(matrix.port, matrix.seconds, matrix.ports), -np.inf)


def _short(matrix: LoadMatrix, columns: _Columns, weight: Floats, loaded: int) -> tuple[list[int], float, Floats]:
    """As ``_sparse``, where few jobs use a port: a handful of numbers is gone through before an array of them is made.

    The bound alone may differ from the other ways', by the rounding of sums.
    """
    start, of_port = matrix.start.tolist(), columns.start
    job_at, seconds_at = columns.job.tolist(), columns.seconds.tolist()
    sums = _port_sums(matrix)
    left: list[float] = weight.tolist()
    last_to_first: list[int] = []
    bound, inf = 0.0, math.inf
    while len(last_to_first) < loaded:
        bottleneck = int(sums.argmax())
        here = range(of_port[bottleneck], of_port[bottleneck + 1])
        alive = [(job_at[k], seconds_at[k]) for k in here if left[job_at[k]] < inf and seconds_at[k] > 0.0]
        if not alive:
            sums[bottleneck] = -inf  # nobody is left here but the ghost of a load, by rounding
            continue
        chosen, theta = alive[0][0], inf
        total = squares = 0.0
        for job, seconds in alive:
            total += seconds
            squares += seconds * seconds
            # Of equal ratios the one that stands later in the input goes later: it is the first of its column.
            if left[job] / seconds < theta:
                chosen, theta = job, left[job] / seconds
        # A load that is too small to divide by: who has it goes last, at no cost to the others.
        theta = 0.0 if theta == inf else min(theta, _MOST_THETA)
        bound += theta * (squares + total * total) / 2
        for job, seconds in alive:
            left[job] = max(left[job] - theta * seconds, 0.0)
        left[chosen] = inf
        last_to_first.append(chosen)
        row = slice(start[chosen], start[chosen + 1])
        ports = matrix.port[row]
        sums[ports] = np.maximum(sums.take(ports) - matrix.seconds[row], 0.0)
    return last_to_first, bound, np.array(left)


def _sparse(matrix: LoadMatrix, columns: _Columns, weight: Floats, loaded: int) -> tuple[list[int], float, Floats]:
    """The ``loaded`` jobs that have load, last first, the dual bound, and the weights that are left."""
    n, m = matrix.jobs, matrix.ports
    start = matrix.start.tolist()
    sums = _port_sums(matrix)
    last_to_first: list[int] = []
    bound = 0.0
    compact_at = n // 2
    while len(last_to_first) < loaded:
        bottleneck = int(sums.argmax())
        here = slice(columns.start[bottleneck], columns.start[bottleneck + 1])
        jobs, seconds = columns.job[here], columns.seconds[here]
        left = weight.take(jobs)
        ratio = left / seconds
        # Of equal ratios the one that stands later in the input goes later: it is the first of its column.
        pick = int(ratio.argmin()) if len(ratio) else -1
        theta = float(ratio[pick]) if pick >= 0 else np.inf
        if theta == np.inf:
            alive = np.flatnonzero((left < np.inf) & (seconds > 0.0))
            if not len(alive):
                sums[bottleneck] = -np.inf  # nobody is left here but the ghost of a load, by rounding
                continue
            # A load that is too small to divide by: who has it goes last, at no cost to the others.
            pick, theta = int(alive[0]), 0.0
        theta = min(theta, _MOST_THETA)
        bound += theta * _constraint(seconds[left < np.inf])
        left -= theta * seconds
        np.maximum(left, 0.0, out=left)
        left[pick] = np.inf
        weight[jobs] = left
        chosen = int(jobs[pick])
        last_to_first.append(chosen)
        row = slice(start[chosen], start[chosen + 1])
        ports = matrix.port[row]
        sums[ports] = np.maximum(sums.take(ports) - matrix.seconds[row], 0.0)
        if n - len(last_to_first) < compact_at and len(columns.job) > _LONG_COLUMN * m:
            columns, compact_at = columns.only(weight < np.inf), compact_at // 2
    return last_to_first, bound, weight


def _dense(array: Floats, left: Floats, loaded: int) -> tuple[list[int], float, Floats]:
    """As ``_sparse``, where most jobs load most ports."""
    columns = np.ascontiguousarray(array.T)
    sums = array.sum(axis=0)
    waiting = np.ones(len(array))
    last_to_first: list[int] = []
    bound = 0.0
    while len(last_to_first) < loaded:
        bottleneck = int(sums.argmax())
        column = columns[bottleneck]
        ratio = left / column
        pick = len(ratio) - 1 - int(ratio[::-1].argmin())
        theta = float(ratio[pick])
        if np.isnan(theta):
            # 0 / 0: a job that has neither weight left nor load here.
            ratio[column == 0.0] = np.inf
            pick = len(ratio) - 1 - int(ratio[::-1].argmin())
            theta = float(ratio[pick])
        if theta == np.inf:
            alive = np.flatnonzero((left < np.inf) & (column > 0.0))
            if not len(alive):
                sums[bottleneck] = -np.inf
                continue
            pick, theta = int(alive[-1]), 0.0
        theta = min(theta, _MOST_THETA)
        bound += theta * _constraint(column * waiting)
        left -= theta * column
        np.maximum(left, 0.0, out=left)
        left[pick] = np.inf
        waiting[pick] = 0.0
        last_to_first.append(pick)
        sums -= array[pick]
    return last_to_first, bound, left


def _constraint(seconds: Floats) -> float:
    """What the jobs that wait at a port add up to, weight by seconds, in any order: the dual's coefficient.

    Added anew each time: what is left of sums from which large loads were taken would be no bound.
    """
    total = float(np.add.reduce(seconds))
    return (float(seconds @ seconds) + total * total) / 2


def completion_times(loads: Loads | LoadMatrix, bands: Sequence[Sequence[int]]) -> Floats:
    """V of each job in seconds: when the last of its ports has served everything up to and including its band.

    ``bands`` hold positions in ``loads``, first served first; a job waits at its own ports for its whole band.
    """
    matrix = loads if isinstance(loads, LoadMatrix) else LoadMatrix.of(loads)
    served = np.zeros(matrix.ports)
    finish = np.zeros(matrix.jobs)
    start, port, seconds = matrix.start.tolist(), matrix.port, matrix.seconds
    for band in bands:
        rows = [(j, port[start[j] : start[j + 1]]) for j in band if start[j] < start[j + 1]]
        for j, its_ports in rows:
            served[its_ports] = done = served.take(its_ports) + seconds[start[j] : start[j + 1]]
            if len(rows) == 1:
                finish[j] = np.maximum.reduce(done)
        if len(rows) > 1:
            for j, its_ports in rows:
                finish[j] = np.maximum.reduce(served.take(its_ports))
    return finish


def _narrow(port: Ints, ports: int) -> NDArray[np.integer]:
    """Port numbers in as few bits as they need: NumPy sorts 16 bits by radix."""
    return port.astype(np.uint16) if ports <= 2**16 else port

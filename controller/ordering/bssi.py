"""BSSI (bottleneck - select - scale - iterate) is the ordering kernel of Sincronia. It also gives a lower bound.

[known] S. Agarwal, S. Rajakrishnan, A. Narayan, R. Agarwal, D. Shmoys, A. Vahdat: Sincronia: Near-Optimal
Network Design for Coflows, SIGCOMM 2018, doi:10.1145/3230543.3230569. Without release times the order is
within 4x of the optimal mean completion time under any rate allocation that keeps the order and wastes no
capacity; the scaling factors are a feasible dual, so the run itself yields a lower bound.

With n jobs and m ports it costs O(n (n + m)) in vector operations on the loads of one port at a time, and less where
jobs use few ports; port sums are updated, and not computed again.
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
"""Drop ordered jobs from the columns when these have at least this many loads on average; below it, that costs more."""
_SHORT_COLUMN = 32
"""Use plain numbers where no port is used by more jobs than this; they are faster than arrays."""
_MOST_THETA = 1e150
"""Limit the scaling factor to this value: a smaller factor is feasible too, and a larger one could overflow."""
_DENSE = 0.25
"""Use whole rows and columns from this share of nonzero loads on; below it, lists of the nonzero loads are faster."""


@dataclass(frozen=True, slots=True)
class BssiResult:
    """The order of the jobs and a bound.

    ``order`` holds positions in the input, first served first. ``lower_bound`` is one of the weighted *sum* of V, in
    seconds.
    """

    order: tuple[int, ...]
    lower_bound: float


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The loads by port. Those of port i stand at ``start[i]:start[i + 1]``, later jobs before earlier ones."""

    start: list[int]
    job: Ints
    seconds: Floats

    @classmethod
    def of(cls, matrix: LoadMatrix) -> _Columns:
        """Returns the columns of a matrix."""
        # A stable sort of the entries, last first, keeps each column's jobs in falling order.
        order = np.argsort(_narrow(matrix.port[::-1], matrix.ports), kind="stable")
        start = np.concatenate(([0], np.cumsum(np.bincount(matrix.port, minlength=matrix.ports))))
        return cls(start.tolist(), matrix.row_of_entry()[::-1][order], matrix.seconds[::-1][order])

    def only(self, alive: NDArray[np.bool_]) -> _Columns:
        """Returns the columns without the jobs that are not alive."""
        keep = alive[self.job]
        before = np.concatenate(([0], np.cumsum(keep)))
        return _Columns(before[self.start].tolist(), self.job[keep], self.seconds[keep])


def bssi(loads: Loads | LoadMatrix | Floats, weights: Sequence[float] | Floats) -> BssiResult:
    """Orders jobs by their loads in seconds at each port, and by their weights.

    The loads are mappings, a matrix or an array (jobs, ports). They are 0 or more, weights above 0; zero loads may be
    left out. Raises ValueError where there are not as many weights as jobs.
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
        # Jobs that are not ordered yet keep the rest of their weight; the weight of ordered jobs is infinite.
        if isinstance(loads, np.ndarray):
            gamma = loads.max(axis=1, initial=0.0)
            last_to_first, bound, left = _dense(loads, weight.copy(), int(np.count_nonzero(gamma)))
        else:
            gamma = loads.bottlenecks()
            columns = _Columns.of(loads)
            algorithm = _short if max(np.diff(columns.start), default=0) <= _SHORT_COLUMN else _sparse
            last_to_first, bound, left = algorithm(loads, columns, weight.copy(), int(np.count_nonzero(gamma)))
    # The other jobs have no load. The one that weighs least goes last; of equal weights, the later one.
    rest = np.flatnonzero(left < np.inf)
    last_to_first += rest[np.lexsort((-rest, left[rest]))].tolist()
    return BssiResult(tuple(reversed(last_to_first)), max(bound, float(weight @ gamma)))


def _port_sums(matrix: LoadMatrix) -> Floats:
    """Returns the seconds of all jobs at each port; -inf where no job has load, so that it is never the bottleneck."""
    used = np.bincount(matrix.port, minlength=matrix.ports) > 0
    return np.where(used, summed(matrix.port, matrix.seconds, matrix.ports), -np.inf)


def _short(matrix: LoadMatrix, columns: _Columns, weight: Floats, loaded: int) -> tuple[list[int], float, Floats]:
    """Returns what ``_sparse`` does, for ports with few jobs: a loop over few numbers is faster than an array of them.

    Only the bound may differ from that of the other algorithms, by the rounding of sums.
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
            sums[bottleneck] = -inf  # no job has load here; the sum is a rounding error
            continue
        chosen, theta = alive[0][0], inf
        total = squares = 0.0
        for job, seconds in alive:
            total += seconds
            squares += seconds * seconds
            # Of equal ratios the later one in the input goes last; it stands first in its column.
            if left[job] / seconds < theta:
                chosen, theta = job, left[job] / seconds
        # The load is too small to divide by. Its job goes last, at no cost to the others.
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
    """Returns the ``loaded`` jobs that have load, last first, the dual bound, and the weights that are left."""
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
        # Of equal ratios the later one in the input goes last; it stands first in its column.
        pick = int(ratio.argmin()) if len(ratio) else -1
        theta = float(ratio[pick]) if pick >= 0 else np.inf
        if theta == np.inf:
            alive = np.flatnonzero((left < np.inf) & (seconds > 0.0))
            if not len(alive):
                sums[bottleneck] = -np.inf  # no job has load here; the sum is a rounding error
                continue
            # The load is too small to divide by. Its job goes last, at no cost to the others.
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
    """Returns what ``_sparse`` does, where most jobs load most ports."""
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
            # 0 / 0 comes from a job without weight left and without load here.
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
    """Returns the coefficient of a port in the dual: half of the sum of squares plus the square of the sum.

    It is computed anew each time, because subtracting large loads from a sum would leave an error, and no bound.
    """
    total = float(np.add.reduce(seconds))
    return (float(seconds @ seconds) + total * total) / 2


def completion_times(loads: Loads | LoadMatrix, bands: Sequence[Sequence[int]]) -> Floats:
    """Returns V of each job in seconds: when the last of its ports has served everything up to and including its band.

    ``bands`` hold positions in ``loads``, first served first; a job waits at its own ports for its whole band.
    """
    matrix = loads if isinstance(loads, LoadMatrix) else LoadMatrix.of(loads)
    served = np.zeros(matrix.ports)
    finish = np.zeros(matrix.jobs)
    start, port, seconds = matrix.start.tolist(), matrix.port, matrix.seconds
    for band in bands:
        rows = [(j, port[start[j] : start[j + 1]]) for j in band if start[j] < start[j + 1]]
        for j, used in rows:
            served[used] = done = served.take(used) + seconds[start[j] : start[j + 1]]
            if len(rows) == 1:
                finish[j] = np.maximum.reduce(done)
        if len(rows) > 1:
            for j, used in rows:
                finish[j] = np.maximum.reduce(served.take(used))
    return finish


def _narrow(port: Ints, ports: int) -> NDArray[np.integer]:
    """Returns port numbers in as few bits as they need, because NumPy sorts 16 bits by radix."""
    return port.astype(np.uint16) if ports <= 2**16 else port

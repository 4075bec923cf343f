"""BSSI, bottleneck - select - scale - iterate: the ordering kernel of Sincronia, with its dual bound.

[known] S. Agarwal, S. Rajakrishnan, A. Narayan, R. Agarwal, D. Shmoys, A. Vahdat: Sincronia: Near-Optimal
Network Design for Coflows, SIGCOMM 2018, doi:10.1145/3230543.3230569. Without release times the order is
within 4x of the optimal mean completion time under any rate allocation that keeps the order and wastes no
capacity; the scaling factors are a feasible dual, so the run itself yields a lower bound.

With n jobs, m ports and z non-zero loads it costs O(n (n + m)) in vector operations on the loads of one
port at a time; port sums are updated, never added anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.model import Port

Loads = Sequence[Mapping[Port, float]]


@dataclass(frozen=True, slots=True)
class BssiResult:
    """``order``: positions in the input, first served first. ``lower_bound``: of the weighted *sum* of V, seconds."""

    order: tuple[int, ...]
    lower_bound: float


def bssi(loads: Loads, weights: Sequence[float]) -> BssiResult:
    """Order jobs by their loads (seconds a port; zero loads may be left out) and positive weights."""
    n = len(loads)
    if len(weights) != n:
        raise ValueError(f"{n} jobs but {len(weights)} weights")
    weight = np.asarray(weights, dtype=float).copy()
    columns, column_jobs, column_loads, job_ports = _by_port(loads)
    sums = np.array([float(load.sum()) for load in column_loads])
    squares = np.array([float((load**2).sum()) for load in column_loads])
    alive = np.ones(n, dtype=bool)
    last_to_first: list[int] = []
    bound = 0.0
    while len(last_to_first) < n:
        bottleneck = int(sums.argmax()) if columns else -1
        live = alive[column_jobs[bottleneck]] if columns else np.zeros(0, dtype=bool)
        if not live.any():
            # No load is left anywhere: who weighs least goes last; of equals the later one.
            rest = np.flatnonzero(alive)
            last_to_first += [int(j) for j in rest[np.lexsort((-rest, weight[rest]))]]
            break
        jobs = column_jobs[bottleneck][live]
        load = column_loads[bottleneck][live]
        ratio = weight[jobs] / load
        # Of equal ratios the one that stands later in the input goes later.
        pick = int(len(ratio) - 1 - ratio[::-1].argmin())
        chosen, theta = int(jobs[pick]), float(ratio[pick])
        bound += theta * (squares[bottleneck] + sums[bottleneck] ** 2) / 2
        weight[jobs] = np.maximum(weight[jobs] - theta * load, 0.0)
        alive[chosen] = False
        last_to_first.append(chosen)
        ports, amounts = job_ports[chosen]
        sums[ports] -= amounts
        squares[ports] -= amounts**2
        # Rounding must not leave a ghost of a load behind where no job is left.
        np.maximum(sums, 0.0, out=sums)
        np.maximum(squares, 0.0, out=squares)
        if not alive[column_jobs[bottleneck]].any():
            sums[bottleneck] = 0.0
    own = sum(w * max(load.values(), default=0.0) for w, load in zip(weights, loads, strict=True))
    return BssiResult(tuple(reversed(last_to_first)), max(bound, own))


def completion_times(loads: Loads, bands: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """V of each job in seconds: when the last of its ports has served everything up to and including its band.

    ``bands`` hold positions in ``loads``, first served first; a job waits at its own ports for its whole band.
    """
    served: dict[Port, float] = {}
    finish = np.zeros(len(loads))
    for band in bands:
        for j in band:
            for port, load in loads[j].items():
                served[port] = served.get(port, 0.0) + load
        for j in band:
            finish[j] = max((served[port] for port, load in loads[j].items() if load > 0), default=0.0)
    return finish


def _by_port(
    loads: Loads,
) -> tuple[
    list[Port],
    list[NDArray[np.int64]],
    list[NDArray[np.float64]],
    list[tuple[NDArray[np.int64], NDArray[np.float64]]],
]:
    """The non-zero loads twice: by port (jobs, loads) and by job (port numbers, loads)."""
    number: dict[Port, int] = {}
    jobs_of: list[list[int]] = []
    loads_of: list[list[float]] = []
    by_job: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for j, load in enumerate(loads):
        ports: list[int] = []
        amounts: list[float] = []
        for port, seconds in load.items():
            if seconds <= 0:
                continue
            i = number.setdefault(port, len(number))
            if i == len(jobs_of):
                jobs_of.append([])
                loads_of.append([])
            jobs_of[i].append(j)
            loads_of[i].append(seconds)
            ports.append(i)
            amounts.append(seconds)
        by_job.append((np.array(ports, dtype=np.int64), np.array(amounts)))
    return (
        list(number),
        [np.array(jobs, dtype=np.int64) for jobs in jobs_of],
        [np.array(amounts) for amounts in loads_of],
        by_job,
    )

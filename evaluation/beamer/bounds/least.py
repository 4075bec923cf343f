"""The least mean stage completion time that any order, and any sharing of the links, can reach. Pure.

No rung is over before its longest trial would be over alone, nor before its busiest port has carried all that its
trials send. So it is for studies one by one. Together they share the ports: for rungs of lengths p at a port, which are
over at C, and of which none begins before r, the sum of p C is at least r sum p + (sum p^2 + (sum p)^2) / 2 (M.
Queyranne: Structure of a simple scheduling polyhedron, 1993, doi:10.1007/BF01581271; a link is a machine that may
divide its time, for which it holds, too). There is such an inequality for every set of rungs at every port. A linear
program with those of them that bind gives the bound. Rungs of a bracket follow each other, so their completion times
add up to the time from the bracket's arrival to its end.

It is no time that can be reached: it knows no iterations, between which a rung's ports must wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from evaluation.beamer.simulation import Rung, SimStudies
from simulator.jobs import Transfer
from simulator.network import Hose
from simulator.sweep.facts import solo_seconds

Array = NDArray[np.float64]
_ENOUGH = 1e-6
"""An inequality that is violated by less than this share of its right side counts as kept."""
_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Least:
    """Bounds of the mean stage completion time, in seconds: each study alone on the network, and all together.

    ``rungs`` has those of each rung alone, by the iterations of a trial that leaves it.
    """

    alone: float
    rungs: Mapping[int, float]
    together: float


@dataclass(frozen=True, slots=True, eq=False)
class _Stages:
    """All rungs, those of a bracket one after the other. Shapes (n,), of ``load`` (n, ports), of ``first`` (brackets,).

    ``least`` are the seconds of each alone, ``begin`` is the earliest time at which it can begin, ``load`` its seconds
    at each port, and ``first`` has the place of each bracket's first rung.
    """

    least: Array
    begin: Array
    load: Array
    first: NDArray[np.int64]


def least(sim: SimStudies) -> Least:
    """Returns the bounds for an experiment's studies."""
    stages = _stages(sim)
    untils = [rung.until for rungs in sim.brackets.values() for rung in rungs]
    by_rung: dict[int, list[float]] = {until: [] for until in sorted(untils)}
    for until, seconds in zip(untils, stages.least.tolist(), strict=True):
        by_rung[until].append(seconds)
    alone = float(stages.least.mean())
    rungs = {until: fmean(seconds) for until, seconds in by_rung.items()}
    # They differ by rounding where no inequality of a port binds.
    return Least(alone, rungs, max(alone, _together(stages) / len(untils)))


def alone_seconds(sim: SimStudies) -> dict[str, float]:
    """Returns how long each job takes alone on the network. Each of its iterations takes as long as any other."""
    hosts, network = sim.workload.hosts, Hose(sim.workload.hosts)
    return {
        job.id: job.iterations * solo_seconds(replace(job, iterations=1), hosts, network) for job in sim.workload.jobs
    }


def _stages(sim: SimStudies) -> _Stages:
    network = Hose(sim.workload.hosts)
    alone = alone_seconds(sim)
    seconds: list[float] = []
    begins: list[float] = []
    loads: list[Array] = []
    first: list[int] = []
    for rungs in sim.brackets.values():
        first.append(len(seconds))
        now = rungs[0].jobs[0].arrival
        for rung in rungs:
            load = _load(rung, network)
            begins.append(now)
            seconds.append(max(float(load.max()), *(alone[job.id] for job in rung.jobs)))
            loads.append(load)
            now += seconds[-1]
    return _Stages(np.array(seconds), np.array(begins), np.array(loads), np.array(first))


def _load(rung: Rung, network: Hose) -> Array:
    """Returns the seconds that a rung needs at each port."""
    total = np.zeros(len(network.ports))
    for job in rung.jobs:
        flows = [flow for step in job.lanes[0] if isinstance(step, Transfer) for flow in step.flows]
        total += job.iterations * network.bytes_on(flows)
    load: Array = total / network.capacity
    return load


def _together(stages: _Stages) -> float:
    """Returns the least sum of all completion times, each from the end of the rung before."""
    count = len(stages.least)
    last = np.append(stages.first[1:], count) - 1
    objective = np.zeros(count)
    objective[last] = 1.0
    rows, sides = _chains(stages)
    for _ in range(_MOST_ROUNDS):
        # The program minimises, subject to rows @ ends >= sides.
        solved = linprog(objective, A_ub=-np.array(rows), b_ub=-np.array(sides), bounds=(0, None), method="highs")
        cuts = _violated(stages, solved.x)
        if not cuts:
            break
        rows += [row for row, _ in cuts]
        sides += [side for _, side in cuts]
    return float(solved.fun - stages.begin[stages.first].sum())


def _chains(stages: _Stages) -> tuple[list[Array], list[float]]:
    """Returns that a rung lasts at least as long as it does alone, from the end of the one before."""
    rows, sides = [], []
    for place, seconds in enumerate(stages.least.tolist()):
        row = np.zeros(len(stages.least))
        row[place] = 1.0
        side = seconds
        if place in stages.first:
            side += float(stages.begin[place])
        else:
            row[place - 1] = -1.0
        rows.append(row)
        sides.append(side)
    return rows, sides


def _violated(stages: _Stages, end: Array) -> list[tuple[Array, float]]:
    """Returns, for each port and each time from which rungs begin, the inequality that is violated most.

    Of the rungs that begin then or later it is one of those that end first (Queyranne).
    """
    order = np.argsort(end, kind="stable")
    cuts = []
    for load in stages.load.T:
        for begin in np.unique(stages.begin).tolist():
            chosen = order[(stages.begin[order] >= begin) & (load[order] > 0)]
            p = load[chosen]
            side = begin * p.cumsum() + ((p * p).cumsum() + p.cumsum() ** 2) / 2
            lacking = side - (p * end[chosen]).cumsum()
            if len(p) and lacking.max() > _ENOUGH * side[lacking.argmax()]:
                until = int(lacking.argmax()) + 1
                row = np.zeros(len(end))
                row[chosen[:until]] = p[:until]
                cuts.append((row, float(side[until - 1])))
    return cuts

"""A heap of lanes by the time of their next event, which knows where each lane stands. Ties go by the lane's number."""

from __future__ import annotations

import math

import numpy as np

from simulator.kernel.jit import inner
from simulator.kernel.state import HEAP, QUANTUM, State

MIN_PARTS, MAX_PARTS = 64.0, 512.0
"""With a quantum, the rest of a step's time has at least and at most so many parts."""


@inner
def _before(s: State, a: int, b: int) -> bool:
    return s.lane[a].key < s.lane[b].key or (s.lane[a].key == s.lane[b].key and a < b)


@inner
def _up(s: State, i: int) -> None:
    lane = s.heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        other = s.heap[parent]
        if not _before(s, lane, other):
            break
        s.heap[i] = other
        s.lane[other].place = i
        i = parent
    s.heap[i] = lane
    s.lane[lane].place = i


@inner
def _down(s: State, i: int) -> None:
    n = s.num[HEAP]
    lane = s.heap[i]
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _before(s, s.heap[child + 1], s.heap[child]):
            child += 1
        other = s.heap[child]
        if not _before(s, other, lane):
            break
        s.heap[i] = other
        s.lane[other].place = i
        i = child
    s.heap[i] = lane
    s.lane[lane].place = i


@inner
def schedule(s: State, lane: int, when: float) -> None:
    """Set the time of a lane's next event; infinite: it has none now, and leaves the heap."""
    if when == float("inf"):
        remove(s, lane)
        return
    if s.lane[lane].place < 0:
        s.lane[lane].key = when
        place = s.num[HEAP]
        s.heap[place] = lane
        s.lane[lane].place = place
        s.num[HEAP] += 1
        _up(s, place)
        return
    before = s.lane[lane].key
    s.lane[lane].key = when
    if when < before:
        _up(s, s.lane[lane].place)
    elif when > before:
        _down(s, s.lane[lane].place)


@inner
def remove(s: State, lane: int) -> None:
    """Take a lane out of the heap, if it is there."""
    i = s.lane[lane].place
    if i < 0:
        return
    s.lane[lane].place = -1
    s.num[HEAP] -= 1
    n = s.num[HEAP]
    if i == n:
        return
    last = s.heap[n]
    s.heap[i] = last
    s.lane[last].place = i
    _up(s, i)
    _down(s, s.lane[last].place)


@inner
def gathered(s: State, lane: int, soonest: float, latest: float) -> float:
    """When to look at a lane whose bundles finish from ``soonest`` to ``latest``: its step's end is never missed.

    In a relay each end of a chunk lets others start, so none waits. Grids are the quantum by powers of two, so that
    lanes meet there and rates are made once for all.
    """
    step = float(s.clk[QUANTUM])
    if step > 0.0 and not s.step[s.lane[lane].step].relay and soonest < latest and soonest < float("inf"):
        rest = latest - soonest
        if rest < MIN_PARTS * step:
            step *= 2.0 ** math.floor(math.log2(rest / (MIN_PARTS * step)))
        elif MAX_PARTS * step < rest < float("inf"):
            step *= 2.0 ** math.floor(math.log2(rest / (MAX_PARTS * step)))
        return min(float(np.ceil(soonest / step)) * step, latest)
    return soonest

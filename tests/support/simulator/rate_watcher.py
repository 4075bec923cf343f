"""Looks at the engine's rates at every event of a run."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from simulator import engine
from simulator.kernel.state import HEAP, NOW, SENDING, State
from tests.support.simulator.sim_reference import filling


class Watcher:
    """Stops the event loop at every event, and looks at the rates."""

    def __init__(self, monkeypatch, check) -> None:
        self.events = 0
        self._advance = engine.advance
        self._check = check
        monkeypatch.setattr(engine, "advance", self.advance)

    def advance(self, s: State, limit: float, madd: bool) -> int:
        while True:
            # With the present as its limit the loop makes the rates right, and does what is due now.
            code = self._advance(s, s.clk[NOW], madd)
            if s.num[4] or s.num[5]:
                return code
            self.events += 1
            self._check(s)
            if s.num[HEAP] == 0 or s.lane.key[s.heap[0]] >= limit:
                return self._advance(s, limit, madd)
            code = self._advance(s, s.lane.key[s.heap[0]], madd)
            if s.num[4] or s.num[5]:
                return code


def sending(s: State) -> list[tuple[int, float, float, tuple[int, ...]]]:
    """Rank, how many flows, the rate of one, and its links, of every bundle that sends."""
    found = []
    for lane in s.lane[s.lane.state == SENDING]:
        first = s.step.first[lane.step]
        for bundle in s.bundle[s.active[first : first + lane.left]]:
            path = tuple(link for link in s.paths[bundle.path].tolist() if link >= 0)
            found.append((int(s.group.rank[s.job.group[lane.job]]), float(bundle.flows), float(bundle.rate), path))
    return found


def check_max_min(s: State) -> None:
    left = dict(enumerate(s.link.capacity.tolist()))
    flows = sending(s)
    for rank in sorted({rank for rank, *_ in flows}):
        paths = [path for its_rank, n, _, path in flows if its_rank == rank for _ in range(int(n))]
        rates = [rate for its_rank, n, rate, _ in flows if its_rank == rank for _ in range(int(n))]
        expected, left = filling(paths, left)
        assert rates == pytest.approx(expected, abs=1e-7)


def check_conservation(s: State) -> None:
    used = np.zeros(len(s.link))
    for _, flows, rate, path in sending(s):
        for link in path:
            used[link] += flows * rate
    assert (used <= s.link.capacity * (1 + 1e-7)).all()
    spare = s.link.capacity - used > 1e-6 * s.link.capacity
    assert not any(spare[list(path)].all() for *_, path in sending(s))


def check_bottlenecks(s: State) -> None:
    """Max-min by what marks it: each flow has a full link on which none of its rank or a later one gets more."""
    used = np.zeros(len(s.link))
    most: dict[int, float] = defaultdict(float)
    flows = sending(s)
    for rank in sorted({rank for rank, *_ in flows}):
        most.clear()
        here = [(n, rate, path) for its_rank, n, rate, path in flows if its_rank == rank]
        for n, rate, path in here:
            for link in path:
                used[link] += n * rate
                most[link] = max(most[link], rate)
        full = used > s.link.capacity * (1 - 1e-6)
        for _, rate, path in here:
            assert any(full[link] and rate >= most[link] * (1 - 1e-6) for link in path)

"""MADD's rates, and what is left on top of them, where every path is out of one port and into another.

A coflow that a full link stops has a rate only where both of a bundle's ports have something left: these are found from
the side that has fewer, and all others keep the rate of 0 that they have.
"""

from __future__ import annotations

import numpy as np

from simulator.kernel.groups import EMPTY
from simulator.kernel.jit import inner
from simulator.kernel.rates_dense import MOST, begin, level, look_at, meet, meet_lane, put, put_lane
from simulator.kernel.state import COLUMNS, LEFT, MET, NEXT, ROW_COUNT, SENDING, State


@inner
def rest(s: State, bundle: int, now: float) -> None:
    """Count off what a bundle has sent so far; it has no rate then."""
    rate = s.bundle[bundle].rate
    if rate > 0.0:
        s.bundle[bundle].left = max(s.bundle[bundle].left - rate * (now - s.bundle[bundle].since), 0.0)
        s.bundle[bundle].rate = 0.0
    s.bundle[bundle].since = now


@inner
def spare_dense(s: State, group: int, now: float) -> None:
    """Give a group's bundles their rates, and hand out what is left of their ports."""
    of_rows, of_columns = 0, 0
    for k in range(s.group[group].cells):
        link = s.linked[group, k]
        if s.link[link].free > 0.0:
            if link & 1:
                of_columns += s.cell[group, link].count
            else:
                of_rows += s.cell[group, link].count
    s.num[MET] = 0
    if min(of_rows, of_columns) == 0 and s.group[group].slowest == np.inf:
        _rest_shut(s, group, now)
        _look_at_met(s)
        return
    begin(s)
    for k in range(s.group[group].cells):
        link = s.linked[group, k]
        meet(s, link, s.link[link].free)
    # Every bundle that is open at both ends is in an open row, and in an open column.
    if MOST * min(of_rows, of_columns) >= s.group[group].bundles:
        _share_in_order(s, group, now)
    else:
        _share_by_lists(s, group, 0 if of_rows <= of_columns else 1, now)
    _leave(s)


@inner
def _share_in_order(s: State, group: int, now: float) -> None:
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING:
                put_lane(s, lane)
    level(s)
    _rest_shut(s, group, now)
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING:
                _write(s, lane, np.inf if s.lane[lane].shut else s.group[group].slowest, now)


@inner
def _share_by_lists(s: State, group: int, side: int, now: float) -> None:
    """Look only at the bundles of open rows (``side`` 0) or of open columns (1), and at those of lanes with a share."""
    bundles = 0
    for k in range(s.group[group].cells):
        link = s.linked[group, k]
        if link & 1 == side and s.link[link].free > 0.0:
            item = s.cell[group, link].head
            while item >= 0:
                bundle = item >> 1
                item = s.chain[item, NEXT]
                if s.link[s.paths[s.bundle[bundle].path, 1 - side]].free > 0.0:
                    s.found[bundles] = bundle
                    bundles += 1
                    put(s, bundle)
    if bundles > 0:
        level(s)
    _rest_shut(s, group, now)
    for k in range(bundles):
        bundle = s.found[k]
        lane = s.bundle[bundle].lane
        if s.lane[lane].shut:
            meet_lane(s, lane)
            path = s.bundle[bundle].path
            rate = min(s.link[s.paths[path, 0]].level, s.link[s.paths[path, 1]].level)
            s.bundle[bundle].rate = rate
            s.bundle[bundle].since = now
            if rate > 0.0:
                when = now + s.bundle[bundle].left / rate
                s.lane[lane].flowing += 1
                s.lane[lane].soonest = min(s.lane[lane].soonest, when)
                s.lane[lane].latest = max(s.lane[lane].latest, when)
    _look_at_met(s)
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING and not s.lane[lane].shut:
                _write(s, lane, s.group[group].slowest, now)


@inner
def _rest_shut(s: State, group: int, now: float) -> None:
    """Let the lanes rest that a full link stops, where they had a rate so far."""
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING and s.lane[lane].shut and s.lane[lane].flowing > 0:
                first = s.step[s.lane[lane].step].first
                for i in range(first, first + s.lane[lane].left):
                    rest(s, s.active[i], now)
                meet_lane(s, lane)


@inner
def _look_at_met(s: State) -> None:
    for k in range(s.num[MET]):
        lane = s.met[k]
        latest = s.lane[lane].latest if s.lane[lane].flowing == s.lane[lane].left else np.inf
        look_at(s, lane, s.lane[lane].soonest, latest)


@inner
def _write(s: State, lane: int, slowest: float, now: float) -> None:
    """Give the bundles of a lane what ends them together in ``slowest`` seconds, and their level on top of it."""
    first = s.step[s.lane[lane].step].first
    soonest, latest = np.inf, 0.0
    for i in range(first, first + s.lane[lane].left):
        bundle = s.active[i]
        path = s.bundle[bundle].path
        left = s.bundle[bundle].left
        rate = left / slowest + min(s.link[s.paths[path, 0]].level, s.link[s.paths[path, 1]].level)
        s.bundle[bundle].rate = rate
        s.bundle[bundle].since = now
        when = now + left / rate if rate > 0.0 else np.inf
        soonest = min(soonest, when)
        latest = max(latest, when)
    s.lane[lane].flowing = s.lane[lane].left
    s.job[s.lane[lane].job].served = 1
    look_at(s, lane, soonest, latest)


@inner
def _leave(s: State) -> None:
    """What the grid's flows left of each link is free of it."""
    rows = s.num[ROW_COUNT]
    for k in range(rows + s.num[COLUMNS]):
        link = s.links[k] if k < rows else s.links[len(s.links) - 1 - (k - rows)]
        left = s.wall[2 * (link & 1) + LEFT, s.link[link].start]
        s.link[link].free = left if left > EMPTY * s.link[link].capacity else 0.0

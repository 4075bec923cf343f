"""Max-min for bundles that fill a grid of sources and targets, as those of a shuffle do: levels of links, not of flows.

In the hose model a flow crosses one egress and one ingress link, and its max-min rate is the lower of the two levels at
which these are full. So the filling needs to know only how many flows each source sends to each target: binding a link
takes its row or its column out of that grid. Bundles on a full link are not even looked at. The rates are those of
``rates_fill``.

Links come in pairs here: 2 i is egress (a row of the grid), 2 i + 1 ingress (a column).
"""

from __future__ import annotations

import numpy as np

from simulator.kernel.groups import SAME, add_delta, free_for, pass_on
from simulator.kernel.heap import gathered, schedule
from simulator.kernel.jit import inner, zero
from simulator.kernel.rates_fill import sink
from simulator.kernel.state import COLUMNS, DENSE, LEFT, MET, NEXT, ROW_COUNT, SENDING, STAMP, WEIGHT, State

MOST = 3
"""At least one in so many open bundles is enough to go through all bundles of a group in order."""


@inner
def is_dense(s: State, group: int) -> bool:
    """Whether a group's bundles fill at least a quarter of their grid."""
    side = 0.5 * s.group[group].cells
    return bool(s.num[DENSE] > 0 and 4.0 * s.group[group].bundles >= side * side)


@inner
def fill_group(s: State, group: int, now: float) -> None:
    """Make all rates of a group anew, and find when each of its lanes finishes something next."""
    begin(s)
    s.num[MET] = 0
    of_rows, of_columns = 0, 0
    cells = s.group[group].cells
    for k in range(cells):
        link = s.linked[group, k]
        free = free_for(s, group, link)
        meet(s, link, free)
        if free > 0.0 and link & 1:
            of_columns += s.cell[group, link].count
        elif free > 0.0:
            of_rows += s.cell[group, link].count
        if free <= 0.0 and s.cell[group, link].use != 0.0:
            _stop(s, group, link, now)
    # Every bundle that is open at both ends is in an open row, and in an open column.
    if MOST * min(of_rows, of_columns) >= s.group[group].bundles:
        _fill_in_order(s, group, now)
    else:
        _fill_by_lists(s, group, cells, 0 if of_rows <= of_columns else 1, now)
    for k in range(cells):
        link = s.linked[group, k]
        change = s.link[link].use - s.cell[group, link].use
        if change != 0.0:
            s.cell[group, link].use = s.link[link].use
            add_delta(s, link, change)
        pass_on(s, group, link)


@inner
def _fill_in_order(s: State, group: int, now: float) -> None:
    """Go through all bundles as they lie in memory: when most of them are open, that is fastest."""
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state != SENDING:
                continue
            put_lane(s, lane)
    level(s)
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING:
                _write_lane(s, lane, now)


@inner
def put_lane(s: State, lane: int) -> None:
    """Put a lane's bundles into the grid: they lie by source, so what is known of a source is looked up once."""
    first = s.step[s.lane[lane].step].first
    source, row, weight = -1, -1, 0.0
    for i in range(first, first + s.lane[lane].left):
        bundle = s.active[i]
        path = s.bundle[bundle].path
        if s.paths[path, 0] != source:
            if row >= 0:
                s.wall[WEIGHT, row] += weight
            source = s.paths[path, 0]
            row, weight = s.link[source].start, 0.0
        if row >= 0:
            column = s.link[s.paths[path, 1]].start
            if column >= 0:
                flows = s.bundle[bundle].flows
                s.grid[row, column] += flows
                weight += flows
    if row >= 0:
        s.wall[WEIGHT, row] += weight


@inner
def _write_lane(s: State, lane: int, now: float) -> None:
    first = s.step[s.lane[lane].step].first
    soonest, latest = np.inf, 0.0
    source, at_source, taken = -1, 0.0, 0.0
    for i in range(first, first + s.lane[lane].left):
        bundle = s.active[i]
        path = s.bundle[bundle].path
        out, into = s.paths[path, 0], s.paths[path, 1]
        if out != source:
            if source >= 0:
                s.link[source].use = taken
            source, at_source, taken = out, s.link[out].level, s.link[out].use
        rate = min(at_source, s.link[into].level)
        if rate <= 0.0:
            latest = np.inf
            continue
        old, left = s.bundle[bundle].rate, s.bundle[bundle].left
        if abs(rate - old) <= SAME * old:
            rate = old
            when = s.bundle[bundle].since + left / rate
        else:
            left = max(left - old * (now - s.bundle[bundle].since), 0.0)
            s.bundle[bundle].left = left
            s.bundle[bundle].since = now
            s.bundle[bundle].rate = rate
            when = now + left / rate
        use = s.bundle[bundle].flows * rate
        taken += use
        s.link[into].use += use
        soonest = min(soonest, when)
        latest = max(latest, when)
    if source >= 0:
        s.link[source].use = taken
    if soonest < np.inf:
        s.job[s.lane[lane].job].served = 1
    look_at(s, lane, soonest, latest)


@inner
def look_at(s: State, lane: int, soonest: float, latest: float) -> None:
    """Look at a lane again when its bundles finish, from ``soonest`` to ``latest``."""
    schedule(s, lane, gathered(s, lane, soonest, latest))
    if s.lane[lane].touched == 1:
        s.lane[lane].touched = 2  # it is in the list of those whose next event is to be found; it has been


@inner
def _fill_by_lists(s: State, group: int, cells: int, side: int, now: float) -> None:
    """Look only at the bundles of open rows (``side`` 0) or of open columns (1)."""
    bundles = 0
    for k in range(cells):
        link = s.linked[group, k]
        if link & 1 == side and s.link[link].free > 0.0:
            item = s.cell[group, link].head
            while item >= 0:
                bundle = item >> 1
                item = s.chain[item, NEXT]
                path = s.bundle[bundle].path
                if s.link[s.paths[path, 1 - side]].free > 0.0:
                    s.found[bundles] = bundle
                    bundles += 1
                    put(s, bundle)
    level(s)
    for k in range(bundles):
        _write(s, s.found[k], now)
    for k in range(s.num[MET]):
        lane = s.met[k]
        latest = s.lane[lane].latest if s.lane[lane].flowing == s.lane[lane].left else np.inf
        look_at(s, lane, s.lane[lane].soonest, latest)


@inner
def begin(s: State) -> None:
    """An empty grid."""
    s.num[STAMP] += 1
    s.num[ROW_COUNT] = 0
    s.num[COLUMNS] = 0


@inner
def meet(s: State, link: int, free: float) -> None:
    """Give a link its row or column; a full one has none."""
    s.link[link].stamp = s.num[STAMP]
    s.link[link].free = free
    s.link[link].use = 0.0
    if free <= 0.0:
        s.link[link].start = -1
        s.link[link].level = 0.0
        return
    if link & 1:
        place = s.num[COLUMNS]
        s.num[COLUMNS] += 1
        s.links[len(s.links) - 1 - place] = link
    else:
        place = s.num[ROW_COUNT]
        s.num[ROW_COUNT] += 1
        s.links[place] = link
    side = 2 * (link & 1)
    s.link[link].start = place
    # One that never binds does not matter.
    s.link[link].level = np.inf
    s.wall[side + LEFT, place] = free
    s.wall[side + WEIGHT, place] = 0.0


@inner
def put(s: State, bundle: int) -> None:
    """Put a bundle, open at both ends, into the grid."""
    path, flows = s.bundle[bundle].path, s.bundle[bundle].flows
    row, column = s.link[s.paths[path, 0]].start, s.link[s.paths[path, 1]].start
    s.grid[row, column] += flows
    s.wall[WEIGHT, row] += flows


@inner
def level(s: State) -> None:
    """Find each link's level; what its flows leave of it is in ``wall``. The grid is empty afterwards."""
    rows, columns = s.num[ROW_COUNT], s.num[COLUMNS]
    # The columns' weights all at once: along rows of memory that is faster than flow by flow, as the rows' are.
    for i in range(rows):
        for j in range(columns):
            s.wall[2 + WEIGHT, j] += s.grid[i, j]
    size = zero()
    for k in range(rows + columns):
        link = s.links[k] if k < rows else s.links[len(s.links) - 1 - (k - rows)]
        side, place = 2 * (link & 1), s.link[link].start
        if s.wall[side + WEIGHT, place] > 0.0:
            s.link[link].key = s.wall[side + LEFT, place] / s.wall[side + WEIGHT, place]
            s.by_share[size] = link
            size += 1
    for i in range((size >> 1) - 1, -1, -1):
        sink(s, i, size)
    while size > 0:
        link = s.by_share[0]
        side, place = 2 * (link & 1), s.link[link].start
        if s.wall[side + WEIGHT, place] > 0.0:
            share = max(s.wall[side + LEFT, place], 0.0) / s.wall[side + WEIGHT, place]
            if share > s.link[link].key:
                # Flows that were bound elsewhere left more for the rest than they would have taken.
                s.link[link].key = share
                sink(s, zero(), size)
                if s.by_share[0] != link:
                    continue
            s.link[link].level = share
            if side == 0:
                for j in range(columns):
                    n = s.grid[place, j]
                    s.wall[2 + LEFT, j] -= n * share
                    s.wall[2 + WEIGHT, j] -= n
                    s.grid[place, j] = 0.0
            else:
                for i in range(rows):
                    n = s.grid[i, place]
                    s.wall[LEFT, i] -= n * share
                    s.wall[WEIGHT, i] -= n
                    s.grid[i, place] = 0.0
            s.wall[side + LEFT, place] -= share * s.wall[side + WEIGHT, place]
            s.wall[side + WEIGHT, place] = 0.0
        size -= 1
        s.by_share[0] = s.by_share[size]
        sink(s, zero(), size)


@inner
def meet_lane(s: State, lane: int) -> None:
    """Put a lane in the list of those whose rates are made, before any of them is."""
    if s.lane[lane].stamp != s.num[STAMP]:
        s.lane[lane].stamp = s.num[STAMP]
        s.lane[lane].soonest = np.inf
        s.lane[lane].latest = 0.0
        s.lane[lane].flowing = 0
        s.met[s.num[MET]] = lane
        s.num[MET] += 1
        s.job[s.lane[lane].job].served = 1


@inner
def _stop(s: State, group: int, link: int, now: float) -> None:
    """Nothing is left of a link: the group's bundles on it rest."""
    item = s.cell[group, link].head
    while item >= 0:
        bundle = item >> 1
        item = s.chain[item, NEXT]
        if s.bundle[bundle].rate > 0.0:
            meet_lane(s, s.bundle[bundle].lane)
            _change(s, bundle, 0.0, now)


@inner
def _change(s: State, bundle: int, rate: float, now: float) -> None:
    left = s.bundle[bundle].left - s.bundle[bundle].rate * (now - s.bundle[bundle].since)
    s.bundle[bundle].left = max(left, 0.0)
    s.bundle[bundle].since = now
    s.bundle[bundle].rate = rate


@inner
def _write(s: State, bundle: int, now: float) -> None:
    """Give a bundle its rate, and note when it would finish."""
    path, lane = s.bundle[bundle].path, s.bundle[bundle].lane
    out, into = s.paths[path, 0], s.paths[path, 1]
    rate = min(s.link[out].level, s.link[into].level)
    old = s.bundle[bundle].rate
    if abs(rate - old) <= SAME * old:
        rate = old
    else:
        _change(s, bundle, rate, now)
    meet_lane(s, lane)
    if rate > 0.0:
        use = s.bundle[bundle].flows * rate
        s.link[out].use += use
        s.link[into].use += use
        when = s.bundle[bundle].since + s.bundle[bundle].left / rate
        s.lane[lane].flowing += 1
        s.lane[lane].soonest = min(s.lane[lane].soonest, when)
        s.lane[lane].latest = max(s.lane[lane].latest, when)

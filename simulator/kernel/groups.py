"""Which bundles of which group are on which link, and which of these cells must be looked at again.

The cells of a link stand in the order of their ranks, and each knows what those before it leave (``free``). What a
group takes otherwise than before is a link's ``delta``, which goes down from cell to cell while the rates are made
again, rank by rank; so each cell is looked at once, and only where something came to it.
"""

from __future__ import annotations

from simulator.kernel.jit import entry, inner
from simulator.kernel.state import (
    ANEW,
    CHANGED,
    DELTAS,
    FIRST,
    I4,
    MOVED,
    NEXT,
    NOW,
    PREV,
    RANKS,
    SENDERS,
    SENDING,
    TOUCHED,
    State,
)

EMPTY = 1e-9
"""A link with less than this share left is full."""
SAME = 1e-11
"""Amounts that differ by less than this share of a link are the same."""


@inner
def mark(s: State, group: int, link: int, why: int) -> None:
    """Look again at a group's rates on a link."""
    before = s.cell[group, link].why
    if before == 0:
        s.seed[group, s.group[group].seeds] = link
        s.group[group].seeds += 1
    if why > before:
        s.cell[group, link].why = why
    s.group[group].dirty = 1
    s.num[FIRST] = min(s.num[FIRST], s.group[group].rank)


@inner
def add_delta(s: State, link: int, change: float) -> None:
    """A group takes ``change`` bytes/s more of a link than before."""
    if s.link[link].has_delta == 0:
        s.link[link].has_delta = 1
        s.deltas[s.num[DELTAS]] = link
        s.num[DELTAS] += 1
    s.link[link].delta += change


@inner
def pass_on(s: State, group: int, link: int) -> None:
    """What comes after the group's cell on a link looks again, if there is less or more left for it."""
    if abs(s.link[link].delta) > SAME * s.link[link].capacity:
        place = s.cell[group, link].place + 1
        if place < s.link[link].presents:
            mark(s, s.present[link, place], link, CHANGED)


@inner
def forget_deltas(s: State) -> None:
    """All cells know of them."""
    for k in range(s.num[DELTAS]):
        s.link[s.deltas[k]].delta = 0.0
        s.link[s.deltas[k]].has_delta = 0
    s.num[DELTAS] = 0


@inner
def free_for(s: State, group: int, link: int) -> float:
    """Bytes/s of a link that those before the group leave; 0 where it is as good as nothing."""
    free = s.cell[group, link].free
    return free if free > EMPTY * s.link[link].capacity else 0.0


@inner
def _open_cell(s: State, group: int, link: int) -> None:
    place = s.link[link].presents
    rank = s.group[group].rank
    while place > 0 and s.group[s.present[link, place - 1]].rank > rank:
        other = s.present[link, place - 1]
        s.present[link, place] = other
        s.cell[other, link].place = place
        place -= 1
    s.present[link, place] = group
    s.link[link].presents += 1
    free = s.link[link].capacity
    if place > 0:
        above = s.present[link, place - 1]
        free = s.cell[above, link].free - s.cell[above, link].use
    s.cell[group, link].free = free
    s.cell[group, link].use = 0.0
    s.cell[group, link].gone = 0.0
    s.cell[group, link].came = 0
    s.cell[group, link].head = -1
    s.cell[group, link].place = place
    s.cell[group, link].linked = s.group[group].cells
    s.linked[group, s.group[group].cells] = link
    s.group[group].cells += 1


@inner
def close_cell(s: State, group: int, link: int) -> None:
    """Forget a cell without bundles; what it took is to be in the link's delta."""
    s.link[link].presents -= 1
    for place in range(s.cell[group, link].place, s.link[link].presents):
        other = s.present[link, place + 1]
        s.present[link, place] = other
        s.cell[other, link].place = place
    s.cell[group, link].place = -1
    s.group[group].cells -= 1
    last = s.linked[group, s.group[group].cells]
    s.linked[group, s.cell[group, link].linked] = last
    s.cell[group, last].linked = s.cell[group, link].linked


@inner
def attach(s: State, bundle: int, group: int) -> None:
    """A bundle of ``group`` begins to send, or comes from another group."""
    s.num[MOVED] = 1
    s.group[group].bundles += 1
    hops = s.paths.shape[1]
    for h in range(hops):
        link = s.paths[s.bundle[bundle].path, h]
        if link < 0:
            break
        item = bundle * hops + h
        if s.cell[group, link].place < 0:
            _open_cell(s, group, link)
        head = s.cell[group, link].head
        s.chain[item, NEXT] = head
        s.chain[item, PREV] = -1
        if head >= 0:
            s.chain[head, PREV] = item
        s.cell[group, link].head = item
        s.cell[group, link].count += 1
        s.cell[group, link].came += 1
        mark(s, group, link, CHANGED)


@inner
def detach(s: State, bundle: int, group: int) -> None:
    """A bundle of ``group`` sends no more, or goes to another group. An empty cell stays until it is looked at."""
    s.num[MOVED] = 1
    taken = s.bundle[bundle].flows * s.bundle[bundle].rate
    s.group[group].bundles -= 1
    hops = s.paths.shape[1]
    for h in range(hops):
        link = s.paths[s.bundle[bundle].path, h]
        if link < 0:
            break
        item = bundle * hops + h
        after, before = s.chain[item, NEXT], s.chain[item, PREV]
        if before >= 0:
            s.chain[before, NEXT] = after
        else:
            s.cell[group, link].head = after
        if after >= 0:
            s.chain[after, PREV] = before
        s.cell[group, link].count -= 1
        s.cell[group, link].gone += taken
        mark(s, group, link, CHANGED)


@entry
def most_of_each(s: State, jobs: I4, first: I4, met: I4, count: I4, taken: I4, chosen: I4) -> None:
    """Choose for each band the group that most of its jobs are in and that no band before it has taken, or -1.

    Band b is ``jobs[first[b]:first[b + 1]]``. Of groups with as many jobs the one that is met first is taken. ``met``,
    ``count`` and ``taken`` have a place for each group; the last two are 0 at the start.
    """
    for band in range(len(chosen)):
        groups = 0
        for i in range(first[band], first[band + 1]):
            group = s.job[jobs[i]].group
            if group < 0:
                continue
            if count[group] == 0:
                met[groups] = group
                groups += 1
            count[group] += 1
        best = -1
        for k in range(groups):
            group = met[k]
            if taken[group] == 0 and (best < 0 or count[group] > count[best]):
                best = group
        for k in range(groups):
            count[met[k]] = 0
        chosen[band] = best
        if best >= 0:
            taken[best] = 1


@entry
def regroup(s: State, jobs: I4, groups: I4, order: I4) -> None:
    """Put ``jobs``, by band, into ``groups``, whose ranks are their places in ``order``; all rates are made anew."""
    for i in range(len(jobs)):
        job = jobs[i]
        old, new = s.job[job].group, groups[i]
        s.job[job].group = new
        s.senders[i] = job
        if i == 0 or groups[i - 1] != new:
            s.group[new].first = i
        s.group[new].end = i + 1
        if old == new or old < 0:
            continue
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state != SENDING:
                continue
            first = s.step[s.lane[lane].step].first
            for k in range(first, first + s.lane[lane].left):
                detach(s, s.active[k], old)
                set_rate(s, s.active[k], 0.0, s.clk[NOW])
                attach(s, s.active[k], new)
    s.num[SENDERS] = len(jobs)
    s.num[MOVED] = 1
    # Groups that are out of use have empty cells at most; these are the first to be looked at, and go.
    for group in range(len(s.group)):
        s.group[group].rank = -1
    for rank in range(len(order)):
        s.group[order[rank]].rank = rank
    for link in range(len(s.link)):
        _sort_cells(s, link)
    s.num[RANKS] = len(order)
    for rank in range(len(order)):
        s.group[rank].order = order[rank]
    s.num[FIRST] = 0


@inner
def _sort_cells(s: State, link: int) -> None:
    """Put a link's cells into the order of their ranks, and say anew what is free for each."""
    kept = 0
    for k in range(s.link[link].presents):
        group = s.present[link, k]
        if s.cell[group, link].count == 0 and s.group[group].rank < 0:
            s.cell[group, link].use = 0.0
            s.cell[group, link].place = -1
            s.group[group].cells -= 1
            last = s.linked[group, s.group[group].cells]
            s.linked[group, s.cell[group, link].linked] = last
            s.cell[group, last].linked = s.cell[group, link].linked
            continue
        place = kept
        while place > 0 and s.group[s.present[link, place - 1]].rank > s.group[group].rank:
            s.present[link, place] = s.present[link, place - 1]
            place -= 1
        s.present[link, place] = group
        kept += 1
    s.link[link].presents = kept
    free = s.link[link].capacity
    for place in range(kept):
        group = s.present[link, place]
        s.cell[group, link].place = place
        s.cell[group, link].free = free
        s.cell[group, link].use -= s.cell[group, link].gone
        s.cell[group, link].gone = 0.0
        s.cell[group, link].came = 0
        free -= s.cell[group, link].use
        mark(s, group, link, ANEW)


@inner
def set_rate(s: State, bundle: int, rate: float, now: float) -> None:
    """One bundle's new rate; its lane's next event is to be found again."""
    left = s.bundle[bundle].left - s.bundle[bundle].rate * (now - s.bundle[bundle].since)
    s.bundle[bundle].left = max(left, 0.0)
    s.bundle[bundle].since = now
    s.bundle[bundle].rate = rate
    lane = s.bundle[bundle].lane
    s.job[s.lane[lane].job].served = 1
    if not s.lane[lane].touched:
        s.lane[lane].touched = 1
        s.touched[s.num[TOUCHED]] = lane
        s.num[TOUCHED] += 1

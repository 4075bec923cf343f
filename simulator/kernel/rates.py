"""Rates: strict priority between groups, and inside a group max-min fairness over what those before it leave.

Only what a change touches is made anew. In a max-min allocation each flow is bound at a link that is full, where nobody
has more; so what happens at a link reaches other flows only where it is full before or after. A group begins with what
came to it (new bundles; links of which more or less is left, or from which a bundle went), takes in all bundles of
every such link that is full, fills these, and takes in the links that this fills up, until there are no more. All
others keep their rates. What the group then takes otherwise of a link goes down to those after it there, rank by rank.
"""

from __future__ import annotations

from simulator.kernel.groups import EMPTY, SAME, add_delta, close_cell, forget_deltas, free_for, pass_on, set_rate
from simulator.kernel.jit import inner, zero
from simulator.kernel.rates_dense import fill_group, is_dense
from simulator.kernel.rates_fill import fill
from simulator.kernel.state import ANEW, FIRST, NEXT, RANKS, STAMP, State


@inner
def settle(s: State, now: float) -> None:
    """Make all rates right again, first served first."""
    rank = s.num[FIRST]
    ranks = s.num[RANKS]
    while rank < ranks:
        group = s.group[rank].order
        if s.group[group].dirty:
            _settle_group(s, group, now)
        rank += 1
    s.num[FIRST] = ranks
    forget_deltas(s)


@inner
def _settle_group(s: State, group: int, now: float) -> None:
    s.group[group].dirty = 0
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    dense = is_dense(s, group)
    links, bundles, changed = zero(), zero(), False
    for k in range(s.group[group].seeds):
        link = s.seed[group, k]
        anew = s.cell[group, link].why == ANEW
        s.cell[group, link].why = 0
        if s.cell[group, link].place < 0:
            continue
        gone, came = s.cell[group, link].gone, s.cell[group, link].came
        s.cell[group, link].gone = 0.0
        s.cell[group, link].came = 0
        grain = SAME * s.link[link].capacity
        moved = anew or gone > grain or abs(s.link[link].delta) > grain
        tight = _is_tight(s, group, link)
        s.cell[group, link].free -= s.link[link].delta
        if s.cell[group, link].count == 0:
            gone = s.cell[group, link].use
        if gone != 0.0:
            s.cell[group, link].use -= gone
            add_delta(s, link, -gone)
        pass_on(s, group, link)
        if s.cell[group, link].count == 0:
            close_cell(s, group, link)
            continue
        free = free_for(s, group, link)
        if free <= 0.0 and s.cell[group, link].use <= 0.0:
            continue  # full before them, and they take nothing of it
        if came > 0 or (moved and (anew or tight or s.cell[group, link].use > free + grain)):
            changed = True
        if dense:
            continue
        if moved and (anew or tight or s.cell[group, link].use > free + grain):
            links = _join(s, link, stamp, links)
        item = s.cell[group, link].head
        for _ in range(came):
            bundle = item // s.paths.shape[1]
            item = s.chain[item, NEXT]
            bundles = _take_in(s, bundle, stamp, bundles)
    s.group[group].seeds = 0
    if dense and changed:
        fill_group(s, group, now)
    elif links > 0 or bundles > 0:
        _fill_around(s, group, stamp, links, bundles, now)


@inner
def _is_tight(s: State, group: int, link: int) -> bool:
    """Whether the group takes all that it can have of a link."""
    free = max(s.cell[group, link].free, 0.0)
    return bool(s.cell[group, link].use >= free - EMPTY * s.link[link].capacity)


@inner
def _join(s: State, link: int, stamp: int, links: int) -> int:
    """All bundles of the group on a link are to be filled anew."""
    if s.link[link].joined != stamp:
        s.link[link].joined = stamp
        s.on_queue[links] = link
        links += 1
    return links


@inner
def _take_in(s: State, bundle: int, stamp: int, bundles: int) -> int:
    """A bundle is to be filled anew."""
    if s.more[bundle].stamp != stamp:
        s.more[bundle].stamp = stamp
        s.found[bundles] = bundle
        bundles += 1
    return bundles


@inner
def _fill_around(s: State, group: int, stamp: int, links: int, bundles: int, now: float) -> None:
    hops = s.paths.shape[1]
    met = 0  # links that a bundle in ``found`` crosses, in ``links``; those in ``on_queue`` have all of theirs there
    at_link, at_bundle = 0, 0
    while True:
        while at_link < links or at_bundle < bundles:
            if at_bundle < bundles:
                bundle = s.found[at_bundle]
                at_bundle += 1
                if not _is_open(s, group, bundle) and s.bundle[bundle].rate == 0.0:
                    # It takes nothing and took nothing: what else is on its links is none of its business.
                    s.more[bundle].new = 0.0
                    continue
                taken = s.bundle[bundle].flows * s.bundle[bundle].rate
                for h in range(hops):
                    link = s.paths[s.bundle[bundle].path, h]
                    if link < 0:
                        break
                    if s.link[link].stamp != stamp:
                        s.link[link].stamp = stamp
                        s.link[link].fixed = s.cell[group, link].use
                        s.links[met] = link
                        met += 1
                        if _is_tight(s, group, link):
                            links = _join(s, link, stamp, links)
                    s.link[link].fixed -= taken
            else:
                link = s.on_queue[at_link]
                at_link += 1
                item = s.cell[group, link].head
                while item >= 0:
                    bundles = _take_in(s, item // hops, stamp, bundles)
                    item = s.chain[item, NEXT]
        for k in range(met):
            link = s.links[k]
            if s.link[link].joined == stamp:
                s.link[link].fixed = 0.0
            s.link[link].free = free_for(s, group, link) - s.link[link].fixed
        for k in range(bundles):
            s.more[s.found[k]].new = -1.0 if _is_open(s, group, s.found[k]) else 0.0
        fill(s, bundles, met)
        for k in range(met):
            link = s.links[k]
            if s.link[link].free <= 0.0 and s.link[link].fixed > EMPTY * s.link[link].capacity:
                links = _join(s, link, stamp, links)
        if at_link == links:
            break
    _write(s, bundles, now)
    for k in range(met):
        s.link[s.links[k]].use = s.link[s.links[k]].fixed
    for k in range(bundles):
        bundle = s.found[k]
        if s.bundle[bundle].rate == 0.0:
            continue
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            s.link[link].use += s.bundle[bundle].flows * s.bundle[bundle].rate
    for k in range(met):
        link = s.links[k]
        change = s.link[link].use - s.cell[group, link].use
        if change != 0.0:
            s.cell[group, link].use = s.link[link].use
            add_delta(s, link, change)
        pass_on(s, group, link)


@inner
def _is_open(s: State, group: int, bundle: int) -> bool:
    """Whether something is left for the group on every link of a bundle."""
    for h in range(s.paths.shape[1]):
        link = s.paths[s.bundle[bundle].path, h]
        if link < 0:
            break
        if free_for(s, group, link) <= 0.0:
            return False
    return True


@inner
def _write(s: State, bundles: int, now: float) -> None:
    """Take the new rates: bytes sent so far are counted off at the old one."""
    for k in range(bundles):
        bundle = s.found[k]
        old, new = s.bundle[bundle].rate, s.more[bundle].new
        if abs(new - old) <= SAME * old:
            continue
        set_rate(s, bundle, new, now)

"""Rates: strict priority between groups, and inside a group max-min fairness over what those before it leave.

Only what a change touches is made anew: cells where a bundle came or went, or where more or less is left than before, and
the bundles of the same group that hang together with them through links that have something left. What a group then
takes otherwise of a link goes down to those that come after it on that link, rank by rank.
"""

from __future__ import annotations

from simulator.jit import jit
from simulator.kernel_groups import SAME, add_delta, close_cell, forget_deltas, free_for, pass_on, set_rate
from simulator.kernel_state import FIRST, FORCED, NEXT, RANKS, STAMP, State
from simulator.rates_dense import fill_group, is_dense
from simulator.rates_fill import fill


@jit
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


@jit
def _settle_group(s: State, group: int, now: float) -> None:
    s.group[group].dirty = 0
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    links = 0
    for k in range(s.group[group].seeds):
        link = s.seed[group, k]
        why = s.cell[group, link].why
        s.cell[group, link].why = 0
        if s.cell[group, link].place < 0:
            continue
        before = s.cell[group, link].free
        s.cell[group, link].free = before - s.link[link].delta
        if s.cell[group, link].count == 0:
            if s.cell[group, link].use != 0.0:
                add_delta(s, link, -s.cell[group, link].use)
                s.cell[group, link].use = 0.0
            pass_on(s, group, link)
            close_cell(s, group, link)
            continue
        if why != FORCED and abs(s.link[link].delta) <= SAME * s.link[link].capacity:
            continue
        if free_for(s, group, link) <= 0.0 and s.cell[group, link].use == 0.0:
            # It is full before them, and they take nothing of it.
            pass_on(s, group, link)
            continue
        s.link[link].joined = stamp
        s.links[links] = link
        links += 1
    s.group[group].seeds = 0
    if links == 0:
        return
    if is_dense(s, group):
        fill_group(s, group, now)
        return
    links, bundles = _component(s, group, stamp, links)
    fill(s, bundles, links)
    _write(s, bundles, now)
    for k in range(links):
        s.link[s.links[k]].use = 0.0
    hops = s.paths.shape[1]
    for k in range(bundles):
        bundle = s.found[k]
        if s.bundle[bundle].rate == 0.0:
            continue
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            s.link[link].use += s.bundle[bundle].flows * s.bundle[bundle].rate
    for k in range(links):
        take(s, group, s.links[k])


@jit
def take(s: State, group: int, link: int) -> None:
    """The group takes ``use`` of a link now: tell those after it."""
    change = s.link[link].use - s.cell[group, link].use
    if change != 0.0:
        s.cell[group, link].use = s.link[link].use
        add_delta(s, link, change)
    pass_on(s, group, link)


@jit
def _component(s: State, group: int, stamp: int, links: int) -> tuple[int, int]:
    """All bundles of the group that hang together with the links found so far. Sets ``new``: 0, or -1 to be filled."""
    hops = s.paths.shape[1]
    bundles = 0
    at = 0
    while at < links:
        link = s.links[at]
        at += 1
        s.link[link].free = free_for(s, group, link)
        item = s.cell[group, link].head
        while item >= 0:
            bundle = item // hops
            item = s.chain[item, NEXT]
            if s.bundle[bundle].stamp == stamp:
                continue
            s.bundle[bundle].stamp = stamp
            s.found[bundles] = bundle
            bundles += 1
            shut = False
            for h in range(hops):
                other = s.paths[s.bundle[bundle].path, h]
                if other < 0:
                    break
                if free_for(s, group, other) <= 0.0:
                    shut = True
            s.bundle[bundle].new = 0.0 if shut else -1.0
            if shut and s.bundle[bundle].rate == 0.0:
                # It takes nothing and took nothing: what else is on its links is none of its business.
                continue
            for h in range(hops):
                other = s.paths[s.bundle[bundle].path, h]
                if other < 0:
                    break
                if s.link[other].joined != stamp:
                    s.link[other].joined = stamp
                    s.links[links] = other
                    links += 1
    return links, bundles


@jit
def _write(s: State, bundles: int, now: float) -> None:
    """Take the new rates: bytes sent so far are counted off at the old one."""
    for k in range(bundles):
        bundle = s.found[k]
        old, new = s.bundle[bundle].rate, s.bundle[bundle].new
        if abs(new - old) <= SAME * old:
            continue
        set_rate(s, bundle, new, now)

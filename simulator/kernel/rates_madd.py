"""MADD, Varys's allocation: every coflow takes the least rates that finish its flows together at its bottleneck.

[known] M. Chowdhury, Y. Zhong, I. Stoica: Efficient Coflow Scheduling with Varys, SIGCOMM 2014,
doi:10.1145/2619239.2626315: coflows in the order of their ranks; the bottleneck time Gamma over what those before
leave; a flow's rate is what it has left over Gamma; what nobody takes is then handed out: no capacity is wasted.
[ours] Coflows of one rank share: they are one coflow, but for those that a full link stops. Left-overs go by max-min
inside each rank, in the same order. All rates are made anew at every event: they follow from what each flow has left.
A coflow that is stopped is known by its links, so its flows are not gone through; Gamma and what is left of a link
follow from the sum of what each flow has left there. Cost O(F log L) for F bundles that send, and O(L) a coflow.
"""

from __future__ import annotations

import numpy as np

from simulator.kernel.groups import EMPTY, close_cell, set_rate
from simulator.kernel.jit import inner, zero
from simulator.kernel.rates_fill import fill
from simulator.kernel.rates_spare import rest, spare_dense
from simulator.kernel.state import DENSE, FIRST, MOVED, RANKS, SENDING, STAMP, State


@inner
def settle_madd(s: State, now: float) -> None:
    """Make all rates again, coflow by coflow, first served first; nothing where nothing came or went."""
    if not s.num[MOVED]:
        return
    s.num[MOVED] = 0
    s.num[FIRST] = s.num[RANKS]
    for rank in range(s.num[RANKS]):
        _forget_seeds(s, s.group[rank].order)
    for link in range(len(s.link)):
        s.link[link].free = s.link[link].capacity
    for rank in range(s.num[RANKS]):
        _together(s, s.group[rank].order, now)
    for rank in range(s.num[RANKS]):
        if s.num[DENSE] > 0:
            spare_dense(s, s.group[rank].order, now)
        else:
            _spare(s, s.group[rank].order, now)


@inner
def _forget_seeds(s: State, group: int) -> None:
    for k in range(s.group[group].seeds):
        link = s.seed[group, k]
        s.cell[group, link].why = 0
        if s.cell[group, link].place >= 0 and s.cell[group, link].count == 0:
            close_cell(s, group, link)
    s.group[group].seeds = 0
    s.group[group].dirty = 0


@inner
def _together(s: State, group: int, now: float) -> None:
    """Find the bottleneck time of a group, and take what it needs off its links."""
    s.num[STAMP] += 1
    full = _meets_full(s, group)
    first, end = s.group[group].first, s.group[group].end
    one_lane = end == first + 1 and s.job[s.senders[first]].end == s.job[s.senders[first]].first + 1
    for k in range(first, end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state == SENDING:
                s.lane[lane].shut = full and (one_lane or _is_shut(s, lane))
                if not s.lane[lane].shut:
                    _add_load(s, lane, now)
    slowest = 0.0
    for k in range(s.group[group].cells):
        link = s.linked[group, k]
        if s.link[link].stamp == s.num[STAMP]:
            slowest = max(slowest, s.link[link].use / s.link[link].free)
    s.group[group].slowest = slowest if slowest > 0.0 else np.inf
    if slowest > 0.0:
        for k in range(s.group[group].cells):
            link = s.linked[group, k]
            if s.link[link].stamp == s.num[STAMP]:
                free = s.link[link].free - s.link[link].use / slowest
                s.link[link].free = free if free > EMPTY * s.link[link].capacity else 0.0


@inner
def _meets_full(s: State, group: int) -> bool:
    """Whether some bundle of a group crosses a link of which nothing is left."""
    full = False
    for k in range(s.group[group].cells):
        full |= s.link[s.linked[group, k]].free <= 0.0
    return full


@inner
def _is_shut(s: State, lane: int) -> bool:
    """Whether a bundle of a lane crosses a link of which nothing is left."""
    hops = s.paths.shape[1]
    first = s.step[s.lane[lane].step].first
    for i in range(first, first + s.lane[lane].left):
        for h in range(hops):
            link = s.paths[s.bundle[s.active[i]].path, h]
            if link >= 0 and s.link[link].free <= 0.0:
                return True
    return False


@inner
def _add_load(s: State, lane: int, now: float) -> None:
    """Count off what a lane's bundles have sent, and add up what they have left by link, in ``use``."""
    hops = s.paths.shape[1]
    stamp = s.num[STAMP]
    first = s.step[s.lane[lane].step].first
    for i in range(first, first + s.lane[lane].left):
        bundle = s.active[i]
        rest(s, bundle, now)
        load = s.bundle[bundle].flows * s.bundle[bundle].left
        path = s.bundle[bundle].path
        for h in range(hops):
            link = s.paths[path, h]
            if link < 0:
                break
            if s.link[link].stamp != stamp:
                s.link[link].stamp = stamp
                s.link[link].use = 0.0
            s.link[link].use += load


@inner
def _spare(s: State, group: int, now: float) -> None:
    """Give a group's bundles their rates, and hand out what is left, for paths of any length."""
    hops = s.paths.shape[1]
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    links, bundles = zero(), zero()
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if s.lane[lane].state != SENDING:
                continue
            slowest = np.inf if s.lane[lane].shut else s.group[group].slowest
            first = s.step[s.lane[lane].step].first
            for i in range(first, first + s.lane[lane].left):
                bundle = s.active[i]
                rest(s, bundle, now)
                set_rate(s, bundle, s.bundle[bundle].left / slowest, now)
                shut = False
                for h in range(hops):
                    link = s.paths[s.bundle[bundle].path, h]
                    if link >= 0 and s.link[link].free <= 0.0:
                        shut = True
                if shut:
                    continue
                s.more[bundle].new = -1.0
                s.found[bundles] = bundle
                bundles += 1
                for h in range(hops):
                    link = s.paths[s.bundle[bundle].path, h]
                    if link < 0:
                        break
                    if s.link[link].stamp != stamp:
                        s.link[link].stamp = stamp
                        s.links[links] = link
                        links += 1
    fill(s, bundles, links)
    for k in range(bundles):
        bundle = s.found[k]
        set_rate(s, bundle, s.bundle[bundle].rate + s.more[bundle].new, now)

"""MADD, Varys's allocation: every coflow takes the least rates that finish its flows together at its bottleneck.

[known] M. Chowdhury, Y. Zhong, I. Stoica: Efficient Coflow Scheduling with Varys, SIGCOMM 2014,
doi:10.1145/2619239.2626315: coflows in the order of their ranks; the bottleneck time Gamma over what those before
leave; a flow's rate is what it has left over Gamma; what nobody takes is then handed out: no capacity is wasted.
[ours] Left-overs go by max-min inside each coflow, in the same order. All rates are made anew at every event: they
follow from what each flow has left. Cost O(F log L) for F bundles in all.
"""

from __future__ import annotations

from simulator.jit import jit
from simulator.kernel_groups import EMPTY, close_cell, set_rate
from simulator.kernel_state import DENSE, FIRST, MOVED, RANKS, SENDERS, SENDING, STAMP, State
from simulator.rates_dense import begin, level, meet, put, write_on_top
from simulator.rates_fill import fill


@jit
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
    for spare in range(2):
        for k in range(s.num[SENDERS]):
            job = s.senders[k]
            for lane in range(s.job[job].first, s.job[job].end):
                if s.lane[lane].state == SENDING and s.lane[lane].left > 0:
                    if spare == 0:
                        _together(s, lane, now)
                    elif s.num[DENSE] > 0:
                        _spare_dense(s, lane, now)
                    else:
                        _spare(s, lane, now)


@jit
def _forget_seeds(s: State, group: int) -> None:
    for k in range(s.group[group].seeds):
        link = s.seed[group, k]
        s.cell[group, link].why = 0
        if s.cell[group, link].place >= 0 and s.cell[group, link].count == 0:
            close_cell(s, group, link)
    s.group[group].seeds = 0
    s.group[group].dirty = 0


@jit
def _together(s: State, lane: int, now: float) -> None:
    hops = s.paths.shape[1]
    first = s.step[s.lane[lane].step].first
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    slowest = 0.0
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        set_rate(s, bundle, s.bundle[bundle].rate, now)
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            if s.link[link].stamp != stamp:
                s.link[link].stamp = stamp
                s.link[link].use = 0.0
            s.link[link].use += s.bundle[bundle].flows * s.bundle[bundle].left
            if s.link[link].use > slowest * s.link[link].free:
                slowest = s.link[link].use / s.link[link].free
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        rate = s.bundle[bundle].left / slowest if slowest > 0.0 else 0.0
        s.more[bundle].new = rate
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            s.link[link].free -= s.bundle[bundle].flows * rate
            if s.link[link].free <= EMPTY * s.link[link].capacity:
                s.link[link].free = 0.0


@jit
def _spare_dense(s: State, lane: int, now: float) -> None:
    begin(s)
    first = s.step[s.lane[lane].step].first
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        path = s.bundle[bundle].path
        out, into = s.paths[path, 0], s.paths[path, 1]
        if s.link[out].stamp != s.num[STAMP]:
            meet(s, out, s.link[out].free)
        if s.link[into].stamp != s.num[STAMP]:
            meet(s, into, s.link[into].free)
        if s.link[out].free > 0.0 and s.link[into].free > 0.0:
            put(s, bundle)
    level(s)
    write_on_top(s, lane, now)


@jit
def _spare(s: State, lane: int, now: float) -> None:
    hops = s.paths.shape[1]
    first = s.step[s.lane[lane].step].first
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    links = 0
    bundles = 0
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        s.bundle[bundle].rate = s.more[bundle].new
        shut = False
        for h in range(hops):
            link = s.paths[s.bundle[bundle].path, h]
            if link < 0:
                break
            if s.link[link].free <= 0.0:
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

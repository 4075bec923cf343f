"""MADD, Varys's allocation: every coflow takes the least rates that finish its flows together at its bottleneck.

[known] M. Chowdhury, Y. Zhong, I. Stoica: Efficient Coflow Scheduling with Varys, SIGCOMM 2014,
doi:10.1145/2619239.2626315: coflows in the order of their ranks; the bottleneck time Gamma over what those before
leave; a flow's rate is what it has left over Gamma; what nobody takes is then handed out: no capacity is wasted.
[ours] Coflows of one rank share: they are one coflow, but for those that a full link stops. Left-overs go by max-min
inside each rank, in the same order. All rates are made anew at every event: they follow from what each flow has left.
Cost O(F log L) for F bundles in all.
"""

from __future__ import annotations

from simulator.jit import inner
from simulator.kernel_groups import EMPTY, close_cell, set_rate
from simulator.kernel_state import DENSE, FIRST, MOVED, RANKS, SENDING, STAMP, State
from simulator.rates_dense import begin, leave, level, meet, put, write_on_top
from simulator.rates_fill import fill


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
            _spare_dense(s, s.group[rank].order, now)
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
def _is_sending(s: State, lane: int) -> bool:
    return bool(s.lane[lane].state == SENDING and s.lane[lane].left > 0)


@inner
def _together(s: State, group: int, now: float) -> None:
    hops = s.paths.shape[1]
    s.num[STAMP] += 1
    slowest = 0.0
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if not _is_sending(s, lane):
                continue
            first = s.step[s.lane[lane].step].first
            shut = False
            for i in range(first, first + s.lane[lane].left):
                bundle = s.active[i]
                set_rate(s, bundle, s.bundle[bundle].rate, now)
                for h in range(hops):
                    link = s.paths[s.bundle[bundle].path, h]
                    if link >= 0 and s.link[link].free <= 0.0:
                        shut = True
            for i in range(first, first + s.lane[lane].left):
                bundle = s.active[i]
                s.more[bundle].new = 0.0 if shut else -1.0
                if not shut:
                    slowest = max(slowest, _add_load(s, bundle))
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if not _is_sending(s, lane):
                continue
            first = s.step[s.lane[lane].step].first
            for i in range(first, first + s.lane[lane].left):
                if s.more[s.active[i]].new < 0.0:
                    _take(s, s.active[i], slowest)


@inner
def _add_load(s: State, bundle: int) -> float:
    """Put what a bundle has left on its links; the seconds that the busiest of them needs so far."""
    slowest = 0.0
    for h in range(s.paths.shape[1]):
        link = s.paths[s.bundle[bundle].path, h]
        if link < 0:
            break
        if s.link[link].stamp != s.num[STAMP]:
            s.link[link].stamp = s.num[STAMP]
            s.link[link].use = 0.0
        s.link[link].use += s.bundle[bundle].flows * s.bundle[bundle].left
        slowest = max(slowest, s.link[link].use / s.link[link].free)
    return slowest


@inner
def _take(s: State, bundle: int, slowest: float) -> None:
    rate = s.bundle[bundle].left / slowest if slowest > 0.0 else 0.0
    s.more[bundle].new = rate
    for h in range(s.paths.shape[1]):
        link = s.paths[s.bundle[bundle].path, h]
        if link < 0:
            break
        s.link[link].free -= s.bundle[bundle].flows * rate
        if s.link[link].free <= EMPTY * s.link[link].capacity:
            s.link[link].free = 0.0


@inner
def _spare_dense(s: State, group: int, now: float) -> None:
    begin(s)
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if not _is_sending(s, lane):
                continue
            first = s.step[s.lane[lane].step].first
            for i in range(first, first + s.lane[lane].left):
                bundle = s.active[i]
                path = s.bundle[bundle].path
                out, into = s.paths[path, 0], s.paths[path, 1]
                if s.link[out].stamp != s.num[STAMP]:
                    meet(s, out, s.link[out].free)
                if s.link[into].stamp != s.num[STAMP]:
                    meet(s, into, s.link[into].free)
                if s.link[out].free > 0.0 and s.link[into].free > 0.0:
                    put(s, bundle)
    level(s)
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if _is_sending(s, lane):
                write_on_top(s, lane, now)
    leave(s)


@inner
def _spare(s: State, group: int, now: float) -> None:
    hops = s.paths.shape[1]
    s.num[STAMP] += 1
    stamp = s.num[STAMP]
    links = 0
    bundles = 0
    for k in range(s.group[group].first, s.group[group].end):
        job = s.senders[k]
        for lane in range(s.job[job].first, s.job[job].end):
            if not _is_sending(s, lane):
                continue
            first = s.step[s.lane[lane].step].first
            for i in range(first, first + s.lane[lane].left):
                bundle = s.active[i]
                s.bundle[bundle].rate = s.more[bundle].new
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

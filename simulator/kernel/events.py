"""The event loop: lanes compute and send, bundles finish, rates are made again; back to Python only for a decision.

An event is a lane's: the end of its computing, or the first of its bundles to finish. With a quantum, bundles that
finish before their step's last are found at the next multiple of it; a step's end is exact, given the rates.
"""

from __future__ import annotations

import numpy as np

from simulator.kernel.groups import attach, detach
from simulator.kernel.heap import gathered, remove, schedule
from simulator.kernel.jit import entry, inner, zero
from simulator.kernel.rates import settle
from simulator.kernel.rates_madd import settle_madd
from simulator.kernel.relay import begin_relay, pass_chunks
from simulator.kernel.state import (
    COMPUTING,
    CROSSED,
    DONE,
    ENDED,
    EVENTS,
    FULL,
    GATED,
    HEAP,
    IDLE,
    LIMIT,
    NOW,
    QUEUED,
    READY,
    ROWS,
    SENDING,
    STOP,
    TOUCHED,
    WAITING,
    State,
)
from simulator.kernel.watch import note_rates

TOGETHER = 1e-9
"""Events within so many seconds of each other are one event, and so are those within a few steps of the clock."""
STEPS = 4.0 * np.finfo(np.float64).eps


@entry
def together(now: float) -> float:
    """Seconds within which events are one at ``now``."""
    return max(TOGETHER, STEPS * now)


@entry
def advance(s: State, limit: float, madd: bool) -> int:
    """Run until ``limit`` seconds, or until a job ends or crosses its target; says which (see ``kernel.state``).

    Jobs that ended and crossed are in ``s.ended`` and ``s.crossed``; their counts are to be reset by the caller.
    """
    if s.num[ENDED] > 0:
        return STOP  # a job that never took any time
    while True:
        _settle(s, madd)
        if len(s.watched) > 0:
            note_rates(s)
            if s.num[ROWS] + len(s.watched) * len(s.job) > len(s.rows):
                return FULL
        if s.num[HEAP] == 0:
            if limit < np.inf:
                s.clk[NOW] = limit
            return IDLE
        now = s.lane[s.heap[0]].key
        if now > limit:
            s.clk[NOW] = limit
            return LIMIT
        now = max(now, s.clk[NOW])
        s.clk[NOW] = now
        until = min(now + together(now), max(limit, now))
        while s.num[HEAP] > 0 and s.lane[s.heap[0]].key <= until:
            lane = s.heap[0]
            remove(s, lane)
            s.num[EVENTS] += 1
            if s.lane[lane].state == COMPUTING:
                s.lane[lane].step += 1
                _push_ready(s, lane)
            else:
                _finish_bundles(s, lane, now)
        _run_ready(s, now)
        if s.num[ENDED] > 0 or s.num[CROSSED] > 0:
            return STOP


@entry
def start(s: State, job: int) -> None:
    """Begin a job's lanes now."""
    for lane in range(s.job[job].first, s.job[job].end):
        s.lane[lane].state = COMPUTING
        s.lane[lane].step = s.lane[lane].first
        _push_ready(s, lane)
    _run_ready(s, s.clk[NOW])


@inner
def _settle(s: State, madd: bool) -> None:
    now = s.clk[NOW]
    if madd:
        settle_madd(s, now)
    else:
        settle(s, now)
    for k in range(s.num[TOUCHED]):
        lane = s.touched[k]
        if s.lane[lane].state == SENDING and s.lane[lane].touched == 1:
            schedule(s, lane, _next_finish(s, lane))
        s.lane[lane].touched = 0
    s.num[TOUCHED] = 0


@inner
def _next_finish(s: State, lane: int) -> float:
    first = s.step[s.lane[lane].step].first
    soonest = np.inf
    latest = 0.0
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        rate = s.bundle[bundle].rate
        if rate <= 0.0:
            latest = np.inf
            continue
        when = s.bundle[bundle].since + s.bundle[bundle].left / rate
        soonest = min(soonest, when)
        latest = max(latest, when)
    return gathered(s, lane, soonest, latest)


@inner
def _finish_bundles(s: State, lane: int, now: float) -> None:
    """Take out the bundles of a lane that have sent all."""
    slack = together(now)
    if s.step[s.lane[lane].step].relay:
        pass_chunks(s, lane, now, slack)
    else:
        _take_out(s, lane, now, slack)
    if s.lane[lane].left == 0:
        _pass_turn(s, lane)
        s.lane[lane].step += 1
        _push_ready(s, lane)
    elif not s.lane[lane].touched:
        # Its rates may stay as they are, and then nobody else would look for its next event.
        s.lane[lane].touched = 1
        s.touched[s.num[TOUCHED]] = lane
        s.num[TOUCHED] += 1


@inner
def _take_out(s: State, lane: int, now: float, slack: float) -> None:
    group = s.job[s.lane[lane].job].group
    first = s.step[s.lane[lane].step].first
    kept = first
    for k in range(first, first + s.lane[lane].left):
        bundle = s.active[k]
        rate = s.bundle[bundle].rate
        if rate > 0.0 and s.bundle[bundle].left <= rate * (now + slack - s.bundle[bundle].since):
            detach(s, bundle, group)
            s.bundle[bundle].left = 0.0
            s.bundle[bundle].since = now
            s.bundle[bundle].rate = 0.0
        else:
            s.active[kept] = bundle
            kept += 1
    s.lane[lane].left = kept - first


@inner
def _push_ready(s: State, lane: int) -> None:
    s.ready[s.num[READY]] = lane
    s.num[READY] += 1


@inner
def _run_ready(s: State, now: float) -> None:
    while s.num[READY] > 0:
        s.num[READY] -= 1
        _run(s, s.ready[s.num[READY]], now)


@inner
def _run(s: State, lane: int, now: float) -> None:
    """Take a lane through its steps until one takes time, and wake those that waited for it."""
    job = s.lane[lane].job
    _walk(s, job, lane, now)
    if s.job[job].gated:
        for other in range(s.job[job].first, s.job[job].end):
            if s.lane[other].state == GATED and _is_open(s, other):
                s.lane[other].state = COMPUTING
                _push_ready(s, other)


@inner
def _walk(s: State, job: int, lane: int, now: float) -> None:
    while True:
        if s.lane[lane].step == s.lane[lane].end:
            s.lane[lane].step = s.lane[lane].first
            s.lane[lane].done += 1
            s.lane[lane].state = WAITING
            _count_iterations(s, job, lane, now)
            if s.lane[lane].done == s.job[job].iterations:
                s.lane[lane].state = DONE
                return
            if not _may_start(s, lane):
                return
        step = s.lane[lane].step
        seconds = s.step[step].seconds
        if seconds > 0.0:
            s.lane[lane].state = COMPUTING
            schedule(s, lane, now + seconds)
            return
        if seconds < 0.0:
            turn = s.step[step].turn
            if turn >= 0:
                if s.turns[turn] >= 0 and s.turns[turn] != lane:
                    s.lane[lane].state = QUEUED
                    return
                s.turns[turn] = lane
            _send(s, lane, now)
            if s.lane[lane].left > 0:
                return
            _pass_turn(s, lane)
        elif not _is_open(s, lane):
            s.lane[lane].state = GATED
            return
        s.lane[lane].step += 1


@inner
def _is_open(s: State, lane: int) -> bool:
    """Whether the lane that this one's step waits for, if any, is far enough."""
    step = s.lane[lane].step
    gate = s.step[step].gate
    if gate < 0:
        return True
    times = s.lane[gate].done + (1 if s.lane[gate].step > s.step[step].gate_step else 0)
    return bool(times >= s.lane[lane].done + 1 - s.step[step].lag)


@inner
def _pass_turn(s: State, lane: int) -> None:
    """The transfer of a lane is over: give its turn to the most urgent of those that wait for it."""
    turn = s.step[s.lane[lane].step].turn
    if turn < 0:
        return
    job = s.lane[lane].job
    best = zero() - 1
    for other in range(s.job[job].first, s.job[job].end):
        step = s.lane[other].step
        if s.lane[other].state != QUEUED or s.step[step].turn != turn:
            continue
        if (
            best < 0
            or s.lane[other].done < s.lane[best].done
            or (s.lane[other].done == s.lane[best].done and s.step[step].urgency < s.step[s.lane[best].step].urgency)
        ):
            best = other
    s.turns[turn] = best
    if best >= 0:
        s.lane[best].state = COMPUTING
        _push_ready(s, best)


@inner
def _send(s: State, lane: int, now: float) -> None:
    step = s.lane[lane].step
    group = s.job[s.lane[lane].job].group
    first = s.step[step].first
    active = first
    if s.step[step].relay:
        begin_relay(s, lane, now)
        if s.lane[lane].left > 0:
            s.lane[lane].state = SENDING
        return
    for bundle in range(first, s.step[step].end):
        if s.more[bundle].bytes <= 0.0:
            continue
        s.bundle[bundle].left = s.more[bundle].bytes
        s.bundle[bundle].rate = 0.0
        s.bundle[bundle].since = now
        s.active[active] = bundle
        active += 1
        attach(s, bundle, group)
    s.lane[lane].left = active - first
    if active > first:
        s.lane[lane].state = SENDING


@inner
def _may_start(s: State, lane: int) -> bool:
    job = s.lane[lane].job
    return bool(s.job[job].slack < 0 or s.lane[lane].done - s.job[job].done <= s.job[job].slack)


@inner
def _count_iterations(s: State, job: int, last: int, now: float) -> None:
    """Note the iterations that every lane has done now, and wake the lanes that waited for them."""
    least = s.job[job].iterations
    for lane in range(s.job[job].first, s.job[job].end):
        least = min(least, s.lane[lane].done)
    before = s.job[job].done
    if least == before:
        return
    place = s.job[job].ends
    crossed = False
    for k in range(before, least):
        s.ends[place + k] = now
        above = s.curves[place + k] >= s.job[job].watch
        was_above = k > 0 and s.curves[place + k - 1] >= s.job[job].watch
        crossed |= above and not was_above and not s.job[job].reported
    s.job[job].done = least
    if least == s.job[job].iterations:
        s.ended[s.num[ENDED]] = job
        s.num[ENDED] += 1
        return
    if crossed:
        s.job[job].reported = 1
        s.crossed[s.num[CROSSED]] = job
        s.num[CROSSED] += 1
    for lane in range(s.job[job].first, s.job[job].end):
        if lane != last and s.lane[lane].state == WAITING and _may_start(s, lane):
            s.lane[lane].state = COMPUTING
            _push_ready(s, lane)

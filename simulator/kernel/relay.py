"""Relays: hosts pass on chunk by chunk what they receive, as the links of a ring all-reduce do.

All bundles of a relay belong to one lane. A bundle sends its chunk k as soon as it has sent the one before and those
bundles that it depends on have sent their chunk k - ``lag``. A bundle that goes on at once keeps its rate, so where all
links of a ring are equally fast its steps cost next to nothing.
"""

from __future__ import annotations

from simulator.kernel.groups import attach, detach
from simulator.kernel.jit import inner
from simulator.kernel.state import MOVED, State


@inner
def begin_relay(s: State, lane: int, now: float) -> None:
    """Start the bundles of a lane's step that wait for no other. Without bytes, none starts."""
    step = s.lane[lane].step
    first, end = s.step[step].first, s.step[step].end
    s.lane[lane].left = 0
    for bundle in range(first, end):
        s.more[bundle].sent = s.more[bundle].chunks if s.more[bundle].bytes <= 0.0 else 0
        s.more[bundle].busy = 0
        s.bundle[bundle].rate = 0.0
    _start(s, lane, now)


@inner
def pass_chunks(s: State, lane: int, now: float, slack: float) -> None:
    """Count the chunks that have been sent, and go on with what may be sent now.

    ``slack``: seconds within which two ends are one.
    """
    step = s.lane[lane].step
    first, end = s.step[step].first, s.step[step].end
    for bundle in range(first, end):
        rate = s.bundle[bundle].rate
        if (
            s.more[bundle].busy
            and rate > 0.0
            and s.bundle[bundle].left <= rate * (now + slack - s.bundle[bundle].since)
        ):
            s.more[bundle].sent += 1
            s.bundle[bundle].left = 0.0
            s.bundle[bundle].since = now
    _start(s, lane, now)


@inner
def _start(s: State, lane: int, now: float) -> None:
    """Let each bundle send its next chunk if it may, and rest if it may not. ``left`` and ``active`` are made anew."""
    step = s.lane[lane].step
    first, end = s.step[step].first, s.step[step].end
    group = s.job[s.lane[lane].job].group
    active = first
    for bundle in range(first, end):
        if s.more[bundle].busy and s.bundle[bundle].left > 0.0:
            s.active[active] = bundle
            active += 1
            continue
        if _may_send(s, bundle):
            s.bundle[bundle].left = s.more[bundle].bytes
            s.bundle[bundle].since = now
            s.num[MOVED] = 1
            if not s.more[bundle].busy:
                s.more[bundle].busy = 1
                attach(s, bundle, group)
            s.active[active] = bundle
            active += 1
        elif s.more[bundle].busy:
            detach(s, bundle, group)
            s.more[bundle].busy = 0
            s.bundle[bundle].rate = 0.0
    s.lane[lane].left = active - first


@inner
def _may_send(s: State, bundle: int) -> bool:
    sent = s.more[bundle].sent
    if sent == s.more[bundle].chunks:
        return False
    needed = sent - s.more[bundle].lag
    source, other = s.more[bundle].source, s.more[bundle].other_source
    return bool((source < 0 or s.more[source].sent > needed) and (other < 0 or s.more[other].sent > needed))


@inner
def left_of(s: State, bundle: int, now: float) -> float:
    """Bytes that one flow of a bundle has left of its step."""
    left: float = max(s.bundle[bundle].left, 0.0)
    if s.bundle[bundle].rate > 0.0:
        left = max(left - s.bundle[bundle].rate * (now - s.bundle[bundle].since), 0.0)
    if s.more[bundle].chunks > 0:
        unsent = s.more[bundle].chunks - s.more[bundle].sent - s.more[bundle].busy
        left = s.more[bundle].bytes * unsent + (left if s.more[bundle].busy else 0.0)
    return left

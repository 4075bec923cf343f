"""How long the scripts of a page held up each of its frames, out of a trace of Chromium. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CATEGORIES = (
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
)
"""What a trace must be asked for."""
SCRIPTS = frozenset({"EvaluateScript", "FireAnimationFrame", "FunctionCall", "RunMicrotasks", "TimerFire"})
TASKS = frozenset({"RunTask"})
WALL, PROCESSOR = "dur", "tdur"
"""Names the length of an event by the clock, and its processor time."""
_FRAME = "BeginMainThreadFrame"

Event = Mapping[str, Any]


def frame_ms(events: Iterable[Event], names: frozenset[str] = SCRIPTS, *, length: str = WALL) -> tuple[float, ...]:
    """Returns for each frame in which a script ran how many milliseconds scripts ran, nested ones counted once.

    A frame is the time from the begin of one frame of the page's main thread to that of the next one; what comes before
    the first and after the last begin is left out. ``names``: of other events than those of scripts. ``length``: what
    of an event is summed, WALL or PROCESSOR. Raises ValueError where the trace has no frames.
    """
    all_events = list(events)
    begins = Counter((event["pid"], event["tid"]) for event in all_events if event["name"] == _FRAME)
    if not begins:
        raise ValueError("the trace has no frames")
    (thread, _), *_ = begins.most_common(1)
    own = sorted((event for event in all_events if (event["pid"], event["tid"]) == thread), key=lambda each: each["ts"])
    starts = [event["ts"] for event in own if event["name"] == _FRAME]
    sums: dict[int, float] = {}
    for event in _outermost(event for event in own if event["name"] in names and event["ph"] == "X"):
        place = bisect_right(starts, event["ts"])
        if 0 < place < len(starts):
            sums[place] = sums.get(place, 0.0) + event.get(length, 0) / 1e3
    return tuple(sums[place] for place in sorted(sums))


def _outermost(events: Iterable[Event]) -> Iterator[Event]:
    """Yields the events that are in no other one."""
    end = -1
    for event in events:
        if event["ts"] >= end:
            end = event["ts"] + event.get(WALL, 0)
            yield event

"""How long the scripts of a page held up each of its frames, out of a trace of Chromium. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

CATEGORIES = (
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
)
"""What a trace must be asked for."""
SCRIPTS = frozenset({"EvaluateScript", "FireAnimationFrame", "FunctionCall", "RunMicrotasks", "TimerFire"})
TASKS = frozenset({"RunTask"})
_FRAME = "BeginMainThreadFrame"

Event = Mapping[str, Any]


def frame_ms(events: Iterable[Event], names: frozenset[str] = SCRIPTS) -> tuple[float, ...]:
    """Returns for each frame in which a script ran how many milliseconds scripts ran, nested ones counted once.

    A frame is the time from the begin of one frame of the page's main thread to that of the next one; what comes before
    the first and after the last begin is left out. ``names``: of other events than those of scripts. Raises ValueError
    where the trace has no frames.
    """
    all_events = list(events)
    begins = Counter((event["pid"], event["tid"]) for event in all_events if event["name"] == _FRAME)
    if not begins:
        raise ValueError("the trace has no frames")
    (thread, _), *_ = begins.most_common(1)
    own = sorted((event for event in all_events if (event["pid"], event["tid"]) == thread), key=lambda each: each["ts"])
    starts = [event["ts"] for event in own if event["name"] == _FRAME]
    sums: dict[int, float] = {}
    for begin, length in _outermost(event for event in own if event["name"] in names and event["ph"] == "X"):
        place = bisect_right(starts, begin)
        if 0 < place < len(starts):
            sums[place] = sums.get(place, 0.0) + length / 1e3
    return tuple(sums[place] for place in sorted(sums))


def _outermost(events: Iterable[Event] | Sequence[Event]) -> Iterator[tuple[int, int]]:
    """Yields begin and length of the events that are in no other one, in microseconds."""
    end = -1
    for event in events:
        if event["ts"] >= end:
            end = event["ts"] + event.get("dur", 0)
            yield event["ts"], event.get("dur", 0)

"""What a trace says of frames: scripts by frame, nested ones once, and of the page's own thread alone."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.bench.support.browser.frames import PROCESSOR, TASKS, frame_ms

PAGE, OTHER = (7, 7), (8, 1)


def event(name: str, begin_ms: float, length_ms: float | None = None, thread: tuple[int, int] = PAGE) -> dict[str, Any]:
    pid, tid = thread
    at = {"name": name, "ts": round(begin_ms * 1e3), "pid": pid, "tid": tid}
    if length_ms is None:
        return at | {"ph": "I"}
    return at | {"ph": "X", "dur": round(length_ms * 1e3), "tdur": round(length_ms * 250)}


TRACE = [
    event("TimerFire", 5, 90),
    event("BeginMainThreadFrame", 100),
    event("FireAnimationFrame", 101, 30),
    event("FunctionCall", 102, 20),
    event("RunMicrotasks", 125, 5),
    event("TimerFire", 140, 4),
    event("Layout", 150, 40),
    event("FunctionCall", 110, 500, OTHER),
    event("BeginMainThreadFrame", 120, None, OTHER),
    event("BeginMainThreadFrame", 200),
    event("BeginMainThreadFrame", 216),
    event("FunctionCall", 217, 2.5),
    event("RunTask", 217, 9),
    event("BeginMainThreadFrame", 232),
    event("FunctionCall", 240, 70),
]


def test_scripts_of_each_frame_that_has_some() -> None:
    assert frame_ms(reversed(TRACE)) == (34.0, 2.5)


def test_other_events_are_summed_in_the_same_way() -> None:
    assert frame_ms(TRACE, TASKS) == (9.0,)


def test_processor_time_may_count_in_the_place_of_the_clock() -> None:
    assert frame_ms(TRACE, length=PROCESSOR) == (8.5, 0.625)


def test_a_trace_without_frames_is_none() -> None:
    with pytest.raises(ValueError, match="no frames"):
        frame_ms([event("FunctionCall", 1, 2)])

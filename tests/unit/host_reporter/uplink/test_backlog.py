"""What waits to be told: order, bounds, nothing lost and nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import Progress
from controller.wire import HostReport, JobSpec, Threshold
from host_reporter.marking.rules_text import Sent
from host_reporter.readers.points import MAX_PENDING, thin
from host_reporter.uplink.backlog import (
    BATCH_POINTS,
    MAX_KEPT,
    MAX_PENDING_IN_ALL,
    MAX_RUNS,
    Backlog,
    Batch,
    Registration,
)

SPEC = JobSpec()


def _points(*iterations: float) -> list[Progress]:
    return [Progress(i, 1000.0 + i, None) for i in iterations]


def _register(backlog: Backlog, *, created: bool = True, now: float = 0.0) -> Registration:
    call = backlog.next_call(now, lease=False)
    assert isinstance(call, Registration)
    backlog.registered(call, created=created)
    return call


def _batch(backlog: Backlog, *, lease: bool = False, now: float = 0.0) -> Batch:
    call = backlog.next_call(now, lease=lease)
    assert isinstance(call, Batch)
    HostReport(session="s", seq=call.seq, sent_at=now, jobs=call.parts)
    return call


def _tell_of_all(backlog: Backlog) -> Batch:
    """The batch that tells that the agent follows what it has registered; it waits for no period."""
    batch = backlog.next_call(0.0, lease=False, progress=False)
    assert isinstance(batch, Batch)
    backlog.answered(batch, (), 0.0)
    return batch


def _told(batch: Batch) -> list[tuple[str, list[float], bool]]:
    return [(part.job, [point.iteration for point in part.points], part.ended) for part in batch.parts]


def test_a_job_is_registered_before_its_points_are_told() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    backlog.add("a", _points(1, 2))
    _register(backlog)
    assert _told(_batch(backlog)) == [("a", [1, 2], False)]


@pytest.mark.parametrize(("direction", "urgent"), [("max", 0.8), ("min", 0.2)])
def test_progress_can_wait_but_not_past_a_threshold_nor_an_end(direction: str, urgent: float) -> None:
    backlog = Backlog()
    for job in ("a", "b"):
        backlog.declare(job, SPEC)
        _register(backlog)
    _tell_of_all(backlog)
    backlog.add("a", _points(1))
    backlog.add("b", _points(1))
    assert backlog.has_progress(0.0)
    assert backlog.next_call(0.0, lease=False, progress=False) is None
    first = _batch(backlog)
    threshold = Threshold.model_validate({"metric": urgent, "direction": direction})
    backlog.answered(first, (), 0.0, {"a": threshold})
    backlog.add("b", [Progress(2.0, 1002.0, urgent)])
    backlog.add("a", [Progress(2.0, 1002.0, 0.5), Progress(3.0, 1003.0, None)])
    assert backlog.next_call(0.0, lease=False, progress=False) is None
    backlog.add("a", [Progress(4.0, 1004.0, urgent), Progress(5.0, 1005.0, 0.5)])
    second = backlog.next_call(0.0, lease=False, progress=False)
    assert isinstance(second, Batch)
    assert _told(second) == [("a", [2, 3, 4, 5], False), ("b", [2], False)]
    assert not backlog.has_progress(0.0)
    backlog.answered(second, (), 0.0, {})
    backlog.add("a", [Progress(6.0, 1006.0, urgent)])
    assert backlog.next_call(0.0, lease=False, progress=False) is None
    backlog.end("b")
    third = backlog.next_call(0.0, lease=False, progress=False)
    assert isinstance(third, Batch)
    assert ("b", [], True) in _told(third)


def test_it_is_told_at_once_and_once_that_a_job_is_followed() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    assert backlog.has_news, "an agent that stops now tells it first"
    _register(backlog)
    assert backlog.has_news
    assert [(part.job, part.followed) for part in _tell_of_all(backlog).parts] == [("a", True)]
    assert not backlog.has_news
    assert backlog.next_call(0.0, lease=False) is None
    backlog.answered(_batch(backlog, lease=True), ("a",), 0.0)
    _register(backlog, created=True)
    assert [part.job for part in _tell_of_all(backlog).parts] == ["a"], "a controller without its memory is told again"


def test_an_end_that_comes_while_a_batch_is_on_its_way_is_told_with_the_next() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    _register(backlog)
    batch = _batch(backlog, lease=True)
    assert _told(batch) == [("a", [], False)]
    backlog.end("a", at=12.5)
    backlog.answered(batch, (), 0.0)
    batch = _batch(backlog)
    assert _told(batch) == [("a", [], True)]
    backlog.answered(batch, (), 0.0)
    assert not backlog.has_news


def test_an_end_from_before_is_told_unless_the_job_has_begun_anew() -> None:
    backlog = Backlog()
    backlog.end_earlier("over", 12.5)
    backlog.declare("again", None)
    backlog.end_earlier("again", 12.5)
    backlog.declare("over", SPEC)
    batch = backlog.next_call(0.0, lease=False, progress=False)
    assert isinstance(batch, Batch)
    assert [(part.job, part.ended, part.as_of) for part in batch.parts] == [
        ("over", True, 12.5),
        ("again", False, None),
    ]
    backlog.answered(batch, ("over",), 0.0)
    _register(backlog)


def test_what_is_put_off_is_no_progress_until_it_is_due() -> None:
    backlog = Backlog()
    backlog.declare("a", None)
    backlog.add("a", _points(1))
    backlog.answered(_batch(backlog), {"a"}, 0.0)
    due = backlog.next_retry(0.0)
    while due is None:
        backlog.answered(_batch(backlog), {"a"}, 0.0)
        due = backlog.next_retry(0.0)
    assert not backlog.has_progress(0.0)
    assert backlog.has_progress(due)


def test_the_end_of_a_run_goes_before_the_next_run_of_the_same_job() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    _register(backlog)
    backlog.add("a", _points(5))
    backlog.end("a")
    backlog.declare("a", SPEC)
    backlog.add("a", _points(1))
    first = _batch(backlog)
    assert _told(first) == [("a", [5], True)]
    backlog.answered(first, (), 0.0)
    _register(backlog)
    assert _told(_batch(backlog)) == [("a", [1], False)]


def test_a_new_job_does_not_wait_for_a_busy_one() -> None:
    backlog = Backlog()
    backlog.declare("busy", SPEC)
    _register(backlog)
    backlog.declare("new", SPEC)
    backlog.add("busy", _points(1))
    call = backlog.next_call(0.0, lease=False)
    assert isinstance(call, Registration)
    assert call.run.job == "new"


def test_a_job_that_the_controller_forgot_is_registered_and_told_again() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    _register(backlog)
    backlog.add("a", _points(1, 2))
    backlog.answered(_batch(backlog), (), 0.0)
    backlog.answered(_batch(backlog, lease=True), ("a",), 0.0)
    backlog.add("a", _points(3))
    _register(backlog, created=True)
    assert _told(_batch(backlog)) == [("a", [1, 2, 3], False)]


def test_a_refused_job_is_quiet_until_its_file_changes() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    call = backlog.next_call(0.0, lease=False)
    assert isinstance(call, Registration)
    backlog.not_registered(call, 0.0, retry=False)
    assert backlog.next_call(99.0, lease=False) is None
    backlog.declare("a", JobSpec(weight=2.0))
    _register(backlog)


def test_a_conflict_is_tried_again_later_and_later() -> None:
    backlog = Backlog()
    backlog.declare("a", SPEC)
    now, waits = 0.0, []
    for _ in range(10):
        call = backlog.next_call(now, lease=False)
        assert isinstance(call, Registration)
        backlog.not_registered(call, now, retry=True)
        due = backlog.next_retry(now)
        waits.append((due or now) - now)
        now = due or now
    assert waits == sorted(waits)
    assert waits[-1] == 30.0


def test_counted_bytes_are_told_once() -> None:
    backlog = Backlog()
    backlog.count_sent({"elsewhere": Sent(10.0)})
    batch = _batch(backlog)
    (part,) = batch.parts
    assert (part.job, part.sent_bytes, part.counter, part.followed) == ("elsewhere", 10.0, 0, False)
    backlog.answered(batch, (), 0.0)
    backlog.count_sent({"elsewhere": Sent(10.0)})
    assert backlog.next_call(0.0, lease=False) is None
    backlog.count_sent({"elsewhere": Sent(10.0, 3)})
    assert [(part.sent_bytes, part.counter) for part in _batch(backlog).parts] == [(10.0, 3)], "another count"


@pytest.mark.parametrize("jobs", [1, 60])
def test_a_controller_that_is_away_costs_old_points_only(jobs: int) -> None:
    backlog = Backlog()
    for j in range(jobs):
        backlog.declare(f"j{j}", SPEC)
        _register(backlog)
    for i in range(0, 3 * MAX_PENDING, 100):
        for j in range(jobs):
            backlog.add(f"j{j}", _points(*range(i, i + 100)))
    backlog.end("j0")
    told: dict[str, list[float]] = {}
    ended = set()
    while isinstance(call := backlog.next_call(0.0, lease=False), Batch):
        HostReport(session="s", seq=call.seq, sent_at=0.0, jobs=call.parts)
        assert sum(len(part.points) for part in call.parts) <= BATCH_POINTS
        for part in call.parts:
            told.setdefault(part.job, []).extend(point.iteration for point in part.points)
            ended |= {part.job} if part.ended else set()
        backlog.answered(call, (), 0.0)
    assert ended == {"j0"}
    assert sum(map(len, told.values())) <= MAX_PENDING_IN_ALL
    for iterations in told.values():
        assert iterations == sorted(set(iterations))
        assert iterations[0] == 0.0
        assert iterations[-1] == 3 * MAX_PENDING - 1
        assert len(iterations) <= MAX_PENDING


def test_more_jobs_than_a_report_holds() -> None:
    backlog = Backlog()
    names = {f"j{i}" for i in range(MAX_RUNS + 500)}
    backlog.count_sent(dict.fromkeys(names, Sent(1.0)))
    told: list[str] = []
    while isinstance(call := backlog.next_call(0.0, lease=False), Batch):
        HostReport(session="s", seq=call.seq, sent_at=0.0, jobs=call.parts)
        told += [part.job for part in call.parts]
        backlog.answered(call, (), 0.0)
    assert sorted(told) == sorted(names)


@given(st.integers(0, 5000), st.integers(2, MAX_KEPT))
def test_thinning_keeps_the_first_and_the_newest(count: int, most: int) -> None:
    points = _points(*range(count))
    left = thin(list(points), most)
    assert len(left) <= most
    assert left == sorted(left, key=lambda point: point.iteration)
    if points:
        assert (left[0], left[-1]) == (points[0], points[-1])


def test_an_end_that_is_told_late_says_when_it_was():
    backlog = Backlog()
    backlog.declare("a", None)
    backlog.add("a", [Progress(1, 10.0, 0.5)])
    backlog.end("a", at=12.5)
    (part,) = backlog.next_call(now=99.0, lease=True).parts
    assert (part.ended, part.as_of) == (True, 12.5)


def test_why_progress_cannot_be_read_is_reported_once_it_changes() -> None:
    backlog = Backlog()
    backlog.declare("a", None)
    backlog.note_unread("a", "")
    backlog.note_unread("a", "no line matches")
    assert _batch(backlog).parts[0].unread == "no line matches"
    backlog.note_unread("a", "no line matches")
    assert backlog.next_call(0.0, lease=False) is None
    backlog.note_unread("a", "")
    assert _batch(backlog).parts[0].unread == ""

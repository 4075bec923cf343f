"""Histories that are written down as numbers: as good as a tuple of reports, for everybody."""

from __future__ import annotations

import pytest

from controller.curves.record import Record, Recorded
from controller.model import Demand, Host, Job, Progress, Snapshot
from controller.policies.registry import make


def _shown(record: Record, first: int, last: int, stride: int = 1) -> Recorded:
    """Reports ``first`` to ``last`` of a curve; every ``stride``-th is kept."""
    kept = range(-(-first // stride) * stride, last + 1, stride)
    points = [_report(iteration) for iteration in kept]
    return record.go_on(
        [point.iteration for point in points],
        [point.time for point in points],
        [1 - 1 / iteration for iteration in kept],
        last=_report(last),
        stands_in=last % stride > 0,
    )


def _report(iteration: int) -> Progress:
    return Progress(float(iteration), 2.0 * iteration, 1 - 1 / iteration)


def _reports(*iterations: int) -> tuple[Progress, ...]:
    return tuple(map(_report, iterations))


def test_a_record_reads_as_a_tuple_of_its_reports() -> None:
    """Length, items, slices, equality: a policy need not know."""
    shown = _shown(Record(), 1, 5)
    expected = _reports(1, 2, 3, 4, 5)
    assert (len(shown), tuple(shown), shown[-1], shown[0], shown[1:3]) == (
        5,
        expected,
        expected[-1],
        expected[0],
        expected[1:3],
    )
    assert shown == expected
    assert hash(shown) == hash(expected)
    assert shown != expected[:4]
    with pytest.raises(IndexError):
        shown[5]


def test_what_was_shown_stays_as_it_was_while_the_record_grows() -> None:
    """The report that stood in is none of those kept, and who looked before does not see what came after."""
    record = Record()
    before = _shown(record, 1, 7, stride=3)
    reports = before.reports
    after = _shown(record, 8, 12, stride=3)
    assert before == _reports(3, 6, 7)
    assert after == _reports(3, 6, 9, 12)
    assert after.goes_on(before) == 2
    assert after.reports is reports
    assert list(before.reports.iterations) == [3.0, 6.0, 7.0]
    assert list(after.reports.iterations) == [3.0, 6.0, 9.0, 12.0]
    assert _shown(Record(), 1, 12, stride=3).goes_on(after) == 0


def test_a_report_without_a_metric_has_none() -> None:
    """Not a number in the record is no metric to who reads it."""
    shown = Record().go_on([1.0], [2.0], [float("nan")], last=Progress(2.0, 3.0), stands_in=True)
    assert shown == (Progress(1.0, 2.0), Progress(2.0, 3.0))


def test_jpas_orders_by_a_record_as_by_a_tuple() -> None:
    """At every moment of two runs, also of an earlier moment again, and of tuples after records."""
    policy = make("jpas")
    records = {"a": Record(), "b": Record()}
    moments: list[tuple[Snapshot, Snapshot]] = []
    for last in range(5, 400, 7):
        shown = {name: _shown(record, _next(record), last) for name, record in records.items()}
        moments.append((_snapshot(shown), _snapshot({f"{name} told": tuple(its) for name, its in shown.items()})))
    for recorded, told in (*moments, *moments[::-9]):
        ours, theirs = policy.order(recorded, None), policy.order(told, None)
        assert [f"{job} told" for (job,) in ours.bands] == [job for (job,) in theirs.bands]
        assert [*ours.reasons.values()] == [each.replace(" told", "") for each in theirs.reasons.values()]
    as_tuples = _snapshot({name: tuple(its) for name, its in shown.items()})
    assert policy.order(as_tuples, None).reasons == policy.order(moments[-1][0], None).reasons
    assert shown["a"] == _reports(*range(1, last + 1))


def _next(record: Record) -> int:
    return record.kept + 1


def _snapshot(progress: dict[str, Recorded] | dict[str, tuple[Progress, ...]]) -> Snapshot:
    hosts = {name: Host(name, 1e9, 1e9) for name in ("h1", "h2")}
    jobs = [
        Job(
            name,
            demand=(Demand("h1", "h2", 1e6 * (number + 1)),),
            iterations_left=500.0 - its[-1].iteration,
            iterations_total=500.0,
            progress=its,
        )
        for number, (name, its) in enumerate(progress.items())
    ]
    return Snapshot(now=1.0, hosts=hosts, jobs=tuple(jobs), classes=7)

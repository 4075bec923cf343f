"""A pattern of the job file's own: the group that is its metric, what ends the job, and what cannot serve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.formats.events import Described, Ended, Event, Point
from host_reporter.formats.matching import PatternError
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.outputs.own_pattern import check, pattern_reader

PATTERN = r"iteration (?P<iteration>\S+)(?: accuracy (?P<metric>\S+))?"
ANY = Declared()


def events(
    lines: list[str], pattern: str = PATTERN, end_pattern: str | None = None, declared: Declared = ANY
) -> list[Event]:
    reader = pattern_reader(pattern, declared, end_pattern)
    return [event for line in lines for event in reader.accept(reader.look(line))]


def points(
    lines: list[str], pattern: str = PATTERN, end_pattern: str | None = None, declared: Declared = ANY
) -> list[Event]:
    return [event for event in events(lines, pattern, end_pattern, declared) if not isinstance(event, Described)]


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("iteration 12 accuracy 0.8123", Point(12.0, 0.8123)),
        ("iteration 12 accuracy 85.3%", Point(12.0, 85.3)),
        ("iteration 1,200", Point(1200.0)),
        ("iteration 12 accuracy nan", Point(12.0, diverged=True)),
        ("iteration 12 accuracy 1e300", Point(12.0)),
        ("[rank0]: 0: iteration 12", Point(12.0)),
    ],
)
def test_a_line(line: str, point: Point) -> None:
    assert points([line]) == [point]


@pytest.mark.parametrize("line", ["iteration 1e300 accuracy 0.5", "iteration many", "warming up", ""])
def test_a_line_that_says_nothing(line: str) -> None:
    assert points([line]) == []


def test_the_date_before_a_line_is_its_time() -> None:
    assert points(["2026-01-01 12:00:00,500+0000 INFO iteration 12"]) == [Point(12.0, None, 1767268800.5)]


@pytest.mark.parametrize("text", ["1767268800.5", "2026-01-01T12:00:00.5+00:00", "2026-01-01 12:00:00,500+00:00"])
def test_times(text: str) -> None:
    assert points([f"{text} it 3"], "(?P<time>.*) it (?P<iteration>.*)") == [Point(3.0, None, 1767268800.5)]


def test_the_end() -> None:
    lines = ["iteration 1", "all done"]
    assert points(lines, end_pattern="all done$") == [Point(1.0), Ended()]


def test_the_metric_has_the_name_before_it_and_its_direction() -> None:
    assert events(["iteration 1 accuracy 0.5"])[0] == Described("accuracy", "max", None, "the job's pattern")
    assert events(["step 1 0.5"], r"step (?P<step>\d+) (?P<loss>.+)")[0].metric == "loss"  # type: ignore[union-attr]


def test_a_metric_whose_direction_nobody_says_is_not_reported() -> None:
    pattern = r"step (?P<step>\d+) thing (?P<metric>.+)"
    assert points(["step 1 thing 2"], pattern) == [Point(1.0)]
    assert points(["step 1 thing 2"], pattern, declared=Declared(direction="max")) == [Point(1.0, 2.0)]
    assert points(["step 1 thing 2"], pattern, declared=Declared("accuracy")) == [Point(1.0, 2.0)]


def test_a_pattern_that_names_a_rank_sees_the_whole_line() -> None:
    assert points(["3: loss 0.5"], r"^(?P<iteration>\d+): loss (?P<loss>.+)") == [Point(3.0, 0.5)]


@given(st.text())
def test_no_line_raises(line: str) -> None:
    events([line, line], r"(?P<iteration>.*?) (?P<metric>.*) (?P<time>.*)", end_pattern="end")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "pattern"),
        ("iteration", "named group"),
        ("(?P<iteration>1)(?P<foo>2)", "foo"),
        ("(?P<iteration", "pattern"),
    ],
)
def test_a_pattern_that_cannot_serve(pattern: str, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        check(pattern, None)


def test_a_wrong_end_pattern_is_named() -> None:
    with pytest.raises(PatternError, match="end_pattern"):
        check(PATTERN, "*")

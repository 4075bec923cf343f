"""Patterns that cost too much: a match is ended, its file is left alone for a while, and nothing else waits."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.formats.matching import MAX_MATCHED, CompiledPattern, Matcher
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.preset import Pattern, Preset
from host_reporter.formats.reading import Reading
from host_reporter.formats.recognition import Recognition
from host_reporter.formats.registry import available
from host_reporter.readers.log_source import Source
from host_reporter.readers.match_limit import TICK_SECONDS, MatchLimit, Overrun
from host_reporter.readers.parse import Event, Point
from host_reporter.readers.tail import Tail

STEP = r"(?P<iteration>\d+)"
WORDS = "iteration 7 " + "word " * 40 + "!"


def reader(pattern: str) -> Interpreter:
    preset = Preset(name="test", title="", source="", patterns=(Pattern(regex=pattern),))
    return Interpreter(Recognition.declared(Matcher(preset)))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (rf"{STEP} (\w+\s?)+$", WORDS),
        (rf"{STEP}(a|aa)+$", "7" + "a" * 60 + "b"),
        (rf"{STEP}(?:.*)*x", "7" + "y" * 3000),
        (rf"{STEP}(.*)(.*)(.*)(.*)(.*)Z", "7" + "y" * 3000),
        (rf"(?=(a+)+$)b{STEP}", "a" * 50 + "c"),
        (rf"(\w*)*\1x{STEP}", "a" * 40),
        (rf"{STEP}(?:[ab]*?)*?c", "7" + "ab" * 900),
        (rf"{STEP}[^x]*[^x]*[^x]*[^x]*x", "7" + "a" * 3000),
    ],
)
@pytest.mark.usefixtures("frozen_heap")
def test_a_match_without_end_is_ended(pattern: str, line: str) -> None:
    """That ``re`` asks for signals while it matches is said nowhere: it is proven here, for its every kind of loop."""
    limit, parse = MatchLimit(), CompiledPattern(Pattern(regex=pattern)).read
    used = time.thread_time()
    with limit, pytest.raises(Overrun):
        limit.run(parse, line)
    # Of the processor's time, which a busy machine does not lengthen; one to two ticks are what it may take.
    assert time.thread_time() - used < 10 * TICK_SECONDS
    with limit:
        assert limit.run(CompiledPattern(Pattern(regex=STEP)).read, "7") == Reading(iteration=7.0)


def test_many_quick_matches_are_none_that_is_long() -> None:
    limit, pattern = MatchLimit(), re.compile(r".*.*x")
    used = time.thread_time()
    with limit:
        while time.thread_time() - used < 0.4:
            limit.run(pattern.search, "y" * 100)


def test_a_pattern_sees_the_beginning_of_a_long_line() -> None:
    parse = CompiledPattern(Pattern(regex=rf"^.*step {STEP}")).read
    assert parse("step 3 " + "x" * 60_000) == Reading(iteration=3.0)
    assert parse("x" * MAX_MATCHED + "step 3") is None


def test_a_file_whose_matches_are_endless_is_read_seldom_and_not_given_up(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"iteration 1 a\n{WORDS}\niteration 3 a\n")
    limit = MatchLimit()
    source = Source(Tail(path), reader(rf"iteration {STEP} (\w+\s?)+$"), overrun_rest_seconds=2.0)
    events, more = source.poll(limit)
    assert (events[-1], more) == (Point(1.0), False)
    problem = source.problem()
    assert problem is not None and "takes too long" in problem
    assert source.poll(limit) == ([], False), "it is left alone"
    assert source.is_there, "and nobody waits for it"
    later: list[Event] = []
    wait_until(lambda: later.extend(source.poll(limit)[0]) or later)
    assert later == [Point(3.0)], "the one line is lost"
    assert source.problem() == problem, "it is said once"
    source.close()


def test_lines_that_each_cost_a_little_too_much_take_a_small_part_of_the_time(tmp_path: Path) -> None:
    path = tmp_path / "log"
    # A line costs ten milliseconds or so: far above what counts as costly, and below what is ended, on any machine.
    path.write_text(("7 " + "y" * 400 + "\n") * 1000)
    source, limit = Source(Tail(path), reader(rf"{STEP}.*.*.*Z"), costly_rest_seconds=3600.0), MatchLimit()
    while not source.is_costly:
        source.poll(limit)
    parsed = source.unmatched
    assert 0 < parsed < 1000, "a turn ends before the lines do"
    for _ in range(10):
        source.poll(limit)
    assert source.unmatched == parsed, "the file rests"
    source.close()


def test_long_lines_that_every_preset_looks_at_are_no_reason_to_leave_a_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    settings = "{" + ", ".join(f"'setting_{number}': {number}" for number in range(120)) + "}\n"
    path.write_text(settings * 25 + "iter 10: loss 2.5, time 50.00ms, mfu 7.05%\n")
    source, limit = Source(Tail(path), Interpreter(Recognition(available()))), MatchLimit()
    events: list[Event] = []
    more = True
    while more:
        found, more = source.poll(limit)
        events += found
    assert not source.is_costly
    assert events[-1] == Point(11.0, 2.5)
    source.close()


def test_the_job_has_no_pattern_to_simplify_where_a_preset_takes_too_long(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(WORDS + "\n")
    source = Source(Tail(path), reader(rf"iteration {STEP} (\w+\s?)+$"))
    source.poll(MatchLimit())
    problem = source.problem()
    assert problem is not None and "the format test takes too long" in problem
    source.close()

"""Whatever a log holds: nothing raises, iterations never go back in a run, and no line takes long."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from host_reporter.formats import registry
from host_reporter.formats.counts.choice import Wanted
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.events import Described, Ended, Event, Point
from host_reporter.formats.matching import MAX_MATCHED
from host_reporter.formats.prefixes.cleaning import Cleaner
from host_reporter.formats.reading import Reading
from host_reporter.readers.auto import auto_source
from tests.support.agent.logs import interpreted
from tests.support.agent.sources import at, events

_number = st.one_of(st.none(), st.floats(0, 1e6), st.integers(0, 1000).map(float))
_value = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf]))
_readings = st.lists(
    st.builds(
        Reading,
        iteration=st.one_of(st.none(), st.none(), _number),
        epoch=_number,
        epochs=_number,
        step=_number,
        of=_number,
        total=_number,
        metrics=st.dictionaries(st.sampled_from(["loss", "val_loss", "accuracy", "thing"]), _value, max_size=3),
        ended=st.sampled_from([False, False, False, True]),
    ),
    max_size=20,
)
_words = [
    "epoch",
    "Epoch 1/3",
    "step",
    "iter",
    "[",
    "]",
    "12",
    "3/10",
    "loss",
    ":",
    "=",
    "0.5",
    "nan",
    "{'loss': ",
    "}",
]
_lines = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(_words), max_size=10).map(" ".join),
        st.binary(max_size=60).map(lambda data: data.decode(errors="replace")),
    ),
    max_size=20,
)


def _sound(events: list[Event]) -> None:
    highest = -math.inf
    for event in events:
        if isinstance(event, Ended):
            highest = -math.inf
        elif isinstance(event, Point):
            assert highest <= event.iteration <= 1e15
            assert event.metric is None or math.isfinite(event.metric)
            highest = event.iteration
        elif isinstance(event, Described):
            assert event.iterations is None or 0 < event.iterations <= 1e15


@given(_readings, st.sets(st.integers(0, 20)))
def test_iterations_never_go_back_in_a_run(readings: list[Reading], files: set[int]) -> None:
    counter = Counter(Wanted())
    events: list[Event] = []
    for place, reading in enumerate(readings):
        if place in files:
            counter.begin_file()
        events += counter.count(reading)
    _sound(events)


@given(_readings, st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_lines_that_may_come_late_raise_nothing(readings: list[Reading], late: set[int], files: set[int]) -> None:
    counter = Counter(Wanted())
    for place, reading in enumerate(readings):
        if place in files:
            counter.begin_file()
        events = counter.count(replace(reading, may_be_late=place in late))
        for event in events + counter.settle() if place % 3 == 0 else events:
            if isinstance(event, Point):
                assert 0 <= event.iteration <= 1e15
                assert event.metric is None or math.isfinite(event.metric)


@settings(deadline=None)
@given(_lines)
def test_no_line_raises(lines: list[str]) -> None:
    _sound(list(interpreted(lines).events))


ADVERSARIES = [
    "a " * 1024,
    "a" * MAX_MATCHED,
    "1" * MAX_MATCHED,
    "1," * 1024,
    "1/" * 1024,
    " " * MAX_MATCHED,
    "[" * MAX_MATCHED,
    "epoch " * 340,
    "epoch 1 " * 250,
    "step [ " * 290,
    "loss " * 400,
    "loss: " * 340,
    "loss=1 " * 290,
    "iteration " + " " * 2000,
    "{'loss': " * 220,
    "'" * MAX_MATCHED,
    "'a':" * 500,
    "| " * 1024,
    "100%|" + "#" * 2000,
    "100%|" * 400,
    "(pid=" * 400,
    "2024-05-01 12:00:00 " * 100,
    "\x1b[" * 1000,
    "\x1b]" * 1000,
    "- " * 1000,
    "a.b/c@d-" * 250,
    "nan " * 500,
    "ETA: " * 400,
    "{'a': {" * 290,
    "[1]\t" + "a-b:" * 500,
    "[1]\t" + "a-b:1\t" * 340,
    "[1]\ta's " * 300,
    "[LightGBM] [Info] Iteration:1, " + "a b : 1 " * 250,
    "Epoch 1: 5%|" + "|" * 2000,
    "Epoch 1/3 " + "\u2501" * 2000,
    "5/14 " + "\u2501" * 2000,
    "5/14 [" + "=" * 2000,
    "5/14 - 1s " + "- a " * 500,
    "    1/8  0G " + "1.5 " * 500,
    "        all " + "1 " * 1000,
    "| ep_rew_mean " + " " * 2000,
    "\u2502 a " + " " * 2000,
    "Test: [ 1/1] " + "Acc@1: 1 (" * 200,
    "loss = 1, " + "step = a, " * 200,
]


@pytest.mark.parametrize("name", sorted(registry.available()))
def test_patterns_need_linear_time(name: str) -> None:
    matcher = registry.available()[name]
    for line in ADVERSARIES:
        for text in (line, line + "x", "epoch 1 step 2 " + line, "iteration 1/ 2 | " + line):
            began = time.thread_time()
            reading = matcher.read(text)
            matcher.is_sure(text, reading)
            # A line that is read in linear time takes a few milliseconds, here with an allowance for slow machines.
            assert time.thread_time() - began < 0.1, text[:60]


def test_cleaning_needs_linear_time() -> None:
    for line in ADVERSARIES:
        began = time.thread_time()
        Cleaner().feed(line * 30)
        assert time.thread_time() - began < 0.3, line[:60]


_parts = st.lists(
    st.one_of(
        st.binary(max_size=80),
        st.sampled_from(
            [
                b"epoch 1 step 5/10 loss 0.5\n",
                b"a,step,loss\n1,2,3\n",
                b'{"step": 1, "loss": NaN}\n',
                b'{"log_history": [{"step": 1}]}',
                b'{"log":"step 1 ","stream":"stdout"}\n',
                b"2024-05-01T12:00:00Z stdout P half\n",
                b"\r\r\n\0\0",
            ]
        ),
    ),
    max_size=12,
).map(b"".join)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=_parts, more=_parts, name=st.sampled_from(["a.log", "a.csv", "a.json", "a.jsonl", "trainer_state.json"]))
def test_no_file_raises_whatever_it_holds_and_becomes(tmp_path: Path, data: bytes, more: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    source = auto_source(at(path))
    found = events(source)
    path.write_bytes(data + more)
    found += events(source)
    path.write_bytes(more)
    found += events(source)
    _sound(found)
    source.problem(final=True)
    source.close()

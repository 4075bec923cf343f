"""What a file called a log holds is told by its first lines, also when they come one at a time."""

from __future__ import annotations

import json

import pytest

from host_reporter.formats import registry
from host_reporter.formats.events import Event, Point
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.outputs.records import JsonReader, TableReader
from host_reporter.formats.outputs.undecided import Undecided
from host_reporter.formats.recognition import Recognition

TABLE = ["epoch,accuracy,loss", "0,0.5,1.5", "1,0.75,0.5"]


@pytest.fixture
def reader() -> Undecided:
    presets = registry.available()
    return Undecided(Interpreter(Recognition(presets)), TableReader(presets), JsonReader(presets))


def read(reader: Undecided, *lines: str) -> list[tuple[float, float | None]]:
    events: list[Event] = []
    for line in lines:
        events += reader.accept(reader.look(line)) + reader.settle()
    return [(event.iteration, event.metric) for event in events if isinstance(event, Point)]


def test_a_table(reader: Undecided) -> None:
    assert read(reader, TABLE[0]) == []
    assert (reader.preset, reader.tally.matched) == (None, 0)
    assert read(reader, *TABLE[1:]) == [(1, 1.5), (2, 0.5)]
    assert (reader.preset, reader.is_guess) == ("keras-csv", False)
    reader.begin_file()
    assert read(reader, TABLE[0], "0,0.25,2.5") == [(1, 2.5)], "the header of a new file is read again"


def test_lines_of_json(reader: Undecided) -> None:
    lines = [json.dumps({"trainer": {"global_step": i}, "loss": 1 / i}) for i in (1, 2)]
    assert read(reader, '{"lr": 1}', *lines) == [(1, 1.0), (2, 0.5)]


@pytest.mark.parametrize(
    "lines",
    [
        ["step 1 loss 3.0"],
        # Settings, and sentences with commas, may come first.
        ['{"lr": 1}', "step 1 loss 3.0"],
        ['{"lr": 1}', '{"model": {"layers": 2}}', "step 1 loss 3.0"],
        ["epoch, loss and accuracy are printed", "step 1 loss 3.0"],
        [TABLE[0], "step 1 loss 3.0"],
        [TABLE[0], "1, loss 3.0, step 1"],
    ],
)
def test_text(reader: Undecided, lines: list[str]) -> None:
    assert read(reader, *lines, "step 2 loss 2.0", "step 3 loss 1.0") == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert reader.preset == "general"


def test_a_line_that_waits_does_not_outlive_its_file(reader: Undecided) -> None:
    read(reader, TABLE[0])
    reader.begin_file()
    assert read(reader, "step 1 loss 3.0", "step 2 loss 2.0") == [(1, 3.0), (2, 2.0)]


def test_one_line_of_json_is_read_when_nothing_follows(reader: Undecided) -> None:
    assert read(reader, '{"step": 5, "loss": 2.0}') == [(5, 2.0)]
    assert read(reader, '{"step": 6, "loss": 1.5}') == [(6, 1.5)]

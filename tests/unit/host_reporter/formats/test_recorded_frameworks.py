"""Recordings of real runs are recognised, and read as the trainings themselves knew their progress."""

from __future__ import annotations

import itertools
import re

import pytest

from host_reporter.formats import registry
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.prefixes.cleaning import Cleaner
from host_reporter.formats.preset import Kind
from host_reporter.readers.auto import Wish, auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.whole import read_whole
from tests.support.agent.logs import parsed
from tests.support.agent.recorded_logs import FILES, recorded

ALL = [(preset, name) for preset, names in FILES.items() for name in names]

EPOCH_OF = {"ultralytics/output.log": 16}
"""How many iterations an epoch has, where a recording's training counted epochs and its log has steps."""

LASTING = {"lightning"}
"""Presets of logs that show a value until the next one, so that two equal ones are not two."""

FIRST_ALONE = {"ray-tune/output.log"}
"""Logs of several trials. What the first one did is known."""


@pytest.mark.parametrize(("preset", "name"), ALL, ids=[name for _, name in ALL])
def test_a_recording_is_recognised_and_needs_no_help(preset: str, name: str) -> None:
    found = parsed(recorded(name).path)
    assert (found.described.preset, found.described.is_guess) == (preset, False)
    assert found.described.metric is not None
    assert found.described.direction is not None
    assert found.problem is None


@pytest.mark.parametrize(("preset", "name"), ALL, ids=[name for _, name in ALL])
def test_a_recording_is_read_as_its_training_knew_it(preset: str, name: str) -> None:
    known = recorded(name)
    wish = Wish(declared=Declared(known.metric))
    found = read_whole(auto_source(Location(known.path, name), wish))
    assert found.described.preset == preset
    assert found.described.direction == known.direction
    # A validation before the training's first step is none that the training knew.
    points = [
        (point.iteration, point.metric) for run in found.runs for point in run if point.metric and point.iteration
    ]
    expected = [(done * EPOCH_OF.get(name, 1), value) for done, value in known.points if value]
    if preset in LASTING:
        expected = [now for before, now in itertools.pairwise([(0, None), *expected]) if before[1] != now[1]]
    if name in FIRST_ALONE:
        points = points[: len(expected)]
    assert [done for done, _ in points] == [done for done, _ in expected]
    assert [value for _, value in points] == pytest.approx([value for _, value in expected], rel=5e-3)


@pytest.mark.parametrize(("preset", "name"), ALL, ids=[name for _, name in ALL])
def test_no_line_of_a_recording_proves_another_preset(preset: str, name: str) -> None:
    presets = registry.available()
    if presets.get(preset) is None or presets[preset].preset.kind is not Kind.LINES:
        return
    cleaner = Cleaner()
    for line in re.split(r"[\r\n]+", recorded(name).path.read_text()):
        text = (cleaner.feed(line) or pytest.fail()).text
        sure = {other.name for other in presets.values() if other.is_sure(text, other.read(text))}
        assert sure <= {preset, *presets[preset].preset.beats}, line

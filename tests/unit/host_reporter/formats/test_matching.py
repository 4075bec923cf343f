"""Records are read by the fields that a preset names."""

from __future__ import annotations

from host_reporter.formats.matching import Matcher
from host_reporter.formats.preset import Fields, Kind, Preset
from host_reporter.formats.reading import Reading


def read(record: dict[str, object], *fields: Fields) -> Reading | None:
    return Matcher(Preset(name="p", title="p", source="recorded", kind=Kind.CSV, fields=fields)).read_record(record)


def test_what_is_added_to_numbers_and_what_is_of_a_validation() -> None:
    training = Fields(needs=("step",), iteration="step", add={"iteration": 1})
    validation = Fields(validation=True)
    assert read({"step": 0, "loss": 2.5}, training, validation) == Reading(iteration=1, metrics={"loss": 2.5})
    assert read({"acc": 0.5}, training, validation) == Reading(metrics={"validation acc": 0.5})


def test_iterations_since_the_row_before() -> None:
    assert read({"l": "18", "reward": "20.5"}, Fields(more="l")) == Reading(more=18, metrics={"reward": 20.5})
    assert read({"l": "", "reward": ""}, Fields(more="l")) is None

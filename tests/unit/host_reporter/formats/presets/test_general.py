"""The general reader on lines as many programs write them, without their presets: a guess, and a useful one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host_reporter.formats.matching import Matcher
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.presets.general import PRESET
from host_reporter.formats.recognition import Recognition
from tests.support.agent.logs import Parsed, interpreted

LOGS = Path(__file__).parents[4] / "data" / "guessed_logs"
"""Logs of a few lines, and what is to be read from them."""

EXPECTED = json.loads((LOGS / "expected.json").read_text())


def guessed(text: str) -> Parsed:
    return interpreted(text.splitlines(), Interpreter(Recognition({PRESET.name: Matcher(PRESET)})))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_of_another_program(name: str) -> None:
    found = guessed((LOGS / f"{name}.log").read_text())
    assert found.is_guess
    assert found.points == [tuple(point) for point in EXPECTED[name]["points"]]
    assert found.described.metric == EXPECTED[name]["metric"]
    assert found.described.iterations == EXPECTED[name]["iterations"]


@pytest.mark.parametrize(
    "line",
    [
        "Num Epochs = 3",
        "Total optimization steps = 345",
        "saving every 500 steps",
        "max_steps: 1000",
        "warmup steps = 10",
        "loading 60,000 samples",
        "epoch loop begins",
    ],
)
def test_settings_are_no_progress(line: str) -> None:
    assert guessed(line).points == []


def test_numbers_as_people_write_them() -> None:
    found = guessed("step 1,200/12k loss: 0,853\nstep 1_300/12k loss: 1.2e-3\nstep 1400/12k loss: 12%\n")
    assert found.points == [(1200, 0.853), (1300, 0.0012), (1400, 12)]
    assert found.described.iterations == 12000

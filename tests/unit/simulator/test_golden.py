"""The golden outputs: small scenarios say today what they said before, byte by byte (see ``tests/golden``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.policies.registry import available
from tests.golden import normalised, run, scenarios, text


@pytest.mark.parametrize("path", scenarios(), ids=lambda path: path.stem)
def test_a_scenario_says_what_it_said(path: Path) -> None:
    command = json.loads(path.read_text())["command"]
    assert text(command, run(command)) == path.read_text(), "see tests/golden: renew it if the change is meant"


def test_every_policy_has_a_scenario() -> None:
    told = [json.loads(path.read_text()) for path in scenarios()]
    assert len(told) >= 12
    results = [document["result"] for document in told]
    parts = [part for result in results for part in result.get("loads", {"": result}).values()]
    assert {policy for part in parts for policy in part["policies"]} >= set(available())


def test_wall_times_and_last_bits_are_left_out() -> None:
    assert normalised({"a": [{"wall_seconds": 1.0, "cpu_seconds": 1.0, "b": 0.1 + 0.2}], "n": None, "i": 3}) == {
        "a": [{"b": 0.3}], "n": None, "i": 3,
    }  # fmt: skip

"""The results that are committed in their small form answer what the claims ask for today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluation import resume
from evaluation.claim import Group, HasSmallForm, load
from tests.support.paths import ROOT

PUBLISHED = sorted((ROOT / "docs" / "figures").glob("*-summary.json"))
MEASURED = sorted((ROOT / "evaluation").glob("*/measured/*.json"))


@cache
def groups(claim: str) -> dict[str, Group[Any]]:
    """Returns the groups of a claim by their names."""
    return {group.name: group for group in load(claim).groups(quick=False, others=True)}


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_measured_group_is_taken_over(path: Path) -> None:
    """Without this, --resume would measure for hours what is there."""
    group = groups(path.parts[-3])[path.stem]
    assert isinstance(group, HasSmallForm)
    found = [resume.load_small(path, group.asked(), datapath, group.answer) for datapath in ("uml", "kernel", "user")]
    assert any(found)


def test_all_groups_of_the_claim_jpas_are_measured() -> None:
    assert {path.stem for path in MEASURED if path.parts[-3] == "jpas"} == groups("jpas").keys()


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_a_published_summary_names_no_path_of_the_machine_that_measured_it(path: Path) -> None:
    named = [text for text in texts(json.loads(path.read_text())) if any(part.startswith("/") for part in text.split())]
    assert named == []


def texts(value: Any) -> Iterator[str]:
    """Yields all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)

"""The results that are committed in their small form answer what the claims ask for today."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evaluation import resume
from evaluation.claim import Group, HasSmallForm, load
from tests.support.paths import ROOT

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

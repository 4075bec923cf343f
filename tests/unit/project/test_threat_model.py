"""Each attack in the threat model names tests, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "explanation" / "threat-model.md"
HEADER = ["attack", "what stops it", "test", "what is left"]


def attacks(text: str) -> Iterator[list[str]]:
    """Yields the cells of each row below the header of a table of attacks."""
    is_table = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if cells == HEADER:
            is_table = True
        elif not line.startswith("|"):
            is_table = False
        elif is_table and set(line) != {"|", "-"}:
            yield cells


def named_in(cell: str) -> list[str]:
    """Returns the tests that a cell names."""
    return re.findall(r"`([^`]+)`", cell)


def exists(test: str, root: Path = ROOT) -> bool:
    """Returns whether a file has this test function: ``path::name``."""
    path, _, name = test.partition("::")
    file = root / path
    if not re.fullmatch(r"test_\w+\.py", file.name) or not name.startswith("test_") or not file.is_file():
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.parse(file.read_text()).body)


ATTACKS = list(attacks(PAGE.read_text()))


def test_there_are_attacks_by_all_who_may_attack() -> None:
    titles = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)
    sections = re.split(r"^### .+$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(titles) >= 8
    for title, section in zip(titles, sections, strict=True):
        assert list(attacks(section)), f"{title}: no attack"


@pytest.mark.parametrize("cells", ATTACKS, ids=[cells[0] for cells in ATTACKS])
def test_what_stops_an_attack_is_proven_by_tests_that_exist(cells: list[str]) -> None:
    assert len(cells) == len(HEADER)
    attack, defence, proof, _ = cells
    assert attack.endswith(".") and defence.endswith(".")
    named = named_in(proof)
    assert named, "no test"
    assert [test for test in named if not exists(test)] == []


def test_a_test_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_b() -> None: ...\ndef helper() -> None: ...\n")
    (tmp_path / "a.py").write_text("def test_b() -> None: ...\n")
    assert exists("test_a.py::test_b", tmp_path)
    for wrong in ("test_a.py::test_c", "test_a.py::helper", "a.py::test_b", "test_z.py::test_b", "test_a.py"):
        assert not exists(wrong, tmp_path), wrong
    table = "| attack | what stops it | test | what is left |\n|---|---|---|---|\n| A. | B. | `c.py::d` `e.py::f` | |\n"
    ((*_, proof, _),) = attacks(f"| attack | other |\n| x | y |\n\n{table}\n| no | row |\n")
    assert named_in(proof) == ["c.py::d", "e.py::f"]

"""The rows of the table of rooms: what import-linter says to an import that no row allows, and that all have a row."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.paths import ROOT

CONTRACTS = """
[importlinter]
root_packages =
    yard
contract_types =
    row: tests.support.import_rows.Row

[importlinter:contract:1]
name = Switches import rails
type = row
importers = yard.switches
may_import = yard.{rails}
"""


def lint(folder: Path, rails: str = "rails", **modules: str) -> subprocess.CompletedProcess[str]:
    package = folder / "yard"
    for name, text in {"__init__": "", "rails/__init__": "", "signals": "", "switches": "", **modules}.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / ".importlinter").write_text(CONTRACTS.format(rails=rails))
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    environment = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}", "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_what_a_row_allows_is_kept(tmp_path: Path) -> None:
    done = lint(tmp_path, switches="import json\nfrom yard.rails import steel\n", **{"rails/steel": ""})
    assert done.returncode == 0, done.stdout


def test_what_no_row_allows_is_named(tmp_path: Path) -> None:
    done = lint(tmp_path, switches="from yard import rails, signals\n")
    assert done.returncode == 1
    assert "yard.switches may not import yard.signals" in done.stdout
    assert "may not import yard.rails" not in done.stdout


def test_a_row_that_names_what_is_not_there_is_no_row(tmp_path: Path) -> None:
    done = lint(tmp_path, rails="rales")
    assert done.returncode == 1
    assert "yard.rales is not there" in done.stdout + done.stderr


def test_every_room_has_exactly_one_row() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = [name for contract in contracts if contract["type"] == "row" for name in contract["importers"]]
    here = {f"controller.{path.stem}" for path in (ROOT / "controller").iterdir() if path.stem[0] != "_"}
    assert sorted(rooms) == sorted(here | {"host_reporter", "simulator", "topologies"})

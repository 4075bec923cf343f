"""The tables of rooms and libraries: what import-linter says to an import that no line allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.paths import ROOT

CONTRACTS = """
[importlinter]
root_packages =
    yard
include_external_packages = True
contract_types =
    rooms: tests.support.import_contracts.Rooms
    libraries: tests.support.import_contracts.Libraries

[importlinter:contract:1]
name = Switches import rails
type = rooms
table =
    yard.rails:
    yard.signals:
    yard.switches: yard.{rails}

[importlinter:contract:2]
name = Only switches have a database
type = libraries
table =
    sqlite3: yard.switches
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


def test_what_a_line_allows_is_kept(tmp_path: Path) -> None:
    done = lint(tmp_path, switches="import json\nfrom yard.rails import steel\n", **{"rails/steel": ""})
    assert done.returncode == 0, done.stdout


def test_what_no_line_allows_is_named(tmp_path: Path) -> None:
    done = lint(tmp_path, switches="from yard import rails, signals\n")
    assert done.returncode == 1
    assert "yard.switches may not import yard.signals" in done.stdout
    assert "may not import yard.rails" not in done.stdout


def test_a_line_that_names_what_is_not_there_is_refused(tmp_path: Path) -> None:
    done = lint(tmp_path, rails="rales")
    assert done.returncode == 1
    assert "yard.rales is not there" in done.stdout + done.stderr


def test_a_module_in_no_room_is_named(tmp_path: Path) -> None:
    done = lint(tmp_path, depot="import yard.rails")
    assert done.returncode == 1
    assert "yard.depot is in no room of the table" in done.stdout


def test_rooms_that_import_each_other_are_named(tmp_path: Path) -> None:
    rails = {"rails/__init__": "from yard.switches import closed\n", "rails/steel": "", "signals": ""}
    done = lint(tmp_path, switches="closed = True\n", **rails)
    assert "cycle" not in done.stdout
    done = lint(tmp_path, switches="from yard.rails import steel\nclosed = True\n", **rails)
    assert done.returncode == 1
    assert re.search(r"import each other in a cycle: yard\.(rails, yard\.switches|switches, yard\.rails)", done.stdout)


def test_a_library_is_for_those_on_its_line(tmp_path: Path) -> None:
    done = lint(tmp_path, switches="import sqlite3\n", signals="import sqlite3\n")
    assert done.returncode == 1
    assert "yard.signals may not import sqlite3" in done.stdout
    assert "yard.switches may not import sqlite3" not in done.stdout


def test_every_folder_and_module_at_the_controllers_top_has_a_line() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = {
        line.partition(":")[0] for contract in contracts if contract["type"] == "rooms" for line in contract["table"]
    }
    here = {
        f"controller.{path.stem}"
        for path in (ROOT / "controller").iterdir()
        if path.stem not in ("__init__", "__pycache__")
    }
    assert here <= rooms

"""Tables that go into a pipe or a file keep all that they say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
from rich.table import Table
from simulator.reports.terminal import output
table = Table("policy", *(f"column {number}" for number in range(20)))
table.add_row("fair sharing", *(f"{number:.5f}" for number in range(20)))
output().print(table)
"""


@pytest.mark.parametrize(("columns", "whole"), [(None, True), ("80", False)])
def test_a_table_in_a_pipe_is_as_wide_as_it_must_be(columns: str | None, whole: bool):
    given = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment = given if columns is None else given | {"COLUMNS": columns}
    found = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert ("fair sharing" in found.stdout and "19.00000" in found.stdout) == whole
    assert max(map(len, found.stdout.splitlines())) < 400

"""Which datapath the demo takes: the one with most processors that the user may use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT
from topologies.box.datapath import IN_BOX, kernel_problem, with_most_processors

AS_NOBODY = """
import os
from topologies.box.datapath import with_most_processors
if os.geteuid() == 0:
    os.setuid(65534)
print(with_most_processors())
"""


def test_without_root_it_is_the_kernels_or_a_box() -> None:
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["auto"]


def test_root_has_all_processors_without_a_kernel_datapath_too() -> None:
    needs_user = os.geteuid() == 0 and kernel_problem() is not None
    assert with_most_processors() == ("user" if needs_user else "auto")


def test_inside_a_box_it_is_the_boxs_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IN_BOX, "1")
    assert with_most_processors() == "auto"

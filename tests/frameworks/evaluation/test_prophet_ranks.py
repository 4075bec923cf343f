"""Real ranks in namespaces of this machine, for what judges DeepProphet: the links are limited, and nothing is left."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from evaluation.deepprophet import arms
from evaluation.deepprophet.arms import Case
from evaluation.deepprophet.namespaces import connected_namespaces

MLP_DEEP_BYTES = 7_719_976


def namespaces() -> set[str]:
    told = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in told.splitlines() if line.startswith("typ")}


def test_two_ranks_take_what_their_links_need() -> None:
    before = namespaces()
    stop = threading.Event()
    slow = arms._real("mlp-deep", Case(8, 2, 5e7), 2.0, stop)
    # A ring of two sends each byte once over each link.
    assert slow > MLP_DEEP_BYTES * 8 / 5e7
    assert slow < 1.6 * MLP_DEEP_BYTES * 8 / 5e7
    assert namespaces() == before


def test_namespaces_are_taken_down_when_it_fails() -> None:
    before = namespaces()
    with pytest.raises(RuntimeError, match="on purpose"), connected_namespaces(3, 1e8) as members:
        assert len(namespaces()) == len(before) + 4
        reached = subprocess.run(
            members[0].command(["ping", "-c1", "-W2", members[2].address]), capture_output=True, check=False
        )
        assert reached.returncode == 0
        raise RuntimeError("on purpose")
    assert namespaces() == before


def test_worker_alone_is_measured(tmp_path: Path) -> None:
    assert 0 < arms._real("mlp-deep", Case(8, 1, None), 0.3, threading.Event()) < 5

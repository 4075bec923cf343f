"""What several unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fake_kernel import FakeKernel
from tests.unit.registry_world import World


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """A ``linux.uml`` on PATH that answers at once, so that a lab in a box can be asked for."""
    made = FakeKernel(tmp_path / "kernel")
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.fixture
def world() -> World:
    """A registry to be told things."""
    return World()

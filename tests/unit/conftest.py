"""What several unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.controller.registry.registry_world import World
from tests.support.fake_kernel import FakeKernel


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

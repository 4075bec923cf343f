"""What several tests of the evaluations need."""

from __future__ import annotations

import pytest

from evaluation import plots
from evaluation.jpas import claim as jpas
from evaluation.jpas.arms import Group
from topologies.experiments.workload import LIGHT


@pytest.fixture
def two_groups(monkeypatch: pytest.MonkeyPatch) -> tuple[Group, Group]:
    """A claim of two small groups, without its picture."""
    made = Group("families", LIGHT, 1, ("target",), 0), Group("families", LIGHT, 2, ("target",), 0)
    monkeypatch.setattr(jpas, "groups", lambda *, quick, others: list(made[: 1 if quick else 2]))
    monkeypatch.setattr(plots, "reductions", lambda *_arguments: None)
    return made

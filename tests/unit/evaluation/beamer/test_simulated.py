"""What the simulator says of the claim's studies, beside what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.beamer.groups import BASELINES, BEAMER, SEEDS
from evaluation.beamer.simulated import FOLDER, simulated
from evaluation.beamer.simulation import Times
from evaluation.beamer.study import read, write


def keep(folder: Path, seed: int, **sct: float) -> None:
    write(folder / f"few-{seed}.json", {arm: Times(seconds, {6: seconds}, seconds) for arm, seconds in sct.items()})


def test_savings_are_of_fair_sharings_on_the_same_seeds(tmp_path: Path) -> None:
    keep(tmp_path, 1, fair=10.0, beamer=8.0, least=5.0)
    keep(tmp_path, 2, fair=30.0, beamer=24.0)
    found = simulated("few", [1, 2], tmp_path)
    assert list(found) == ["beamer"], "one arm was not simulated on all seeds"
    assert found["beamer"]["reduction"] == pytest.approx(0.2)
    assert found["beamer"]["ci95"] == [pytest.approx(0.2)] * 2


def test_nothing_is_told_of_seeds_that_were_not_simulated(tmp_path: Path) -> None:
    keep(tmp_path, 1, fair=10.0, beamer=8.0)
    assert simulated("few", [1, 2], tmp_path) == {}
    assert simulated("few", [], tmp_path) == {}


def test_the_claims_studies_were_simulated_under_each_policy() -> None:
    for kind, seeds in SEEDS.items():
        for seed in seeds:
            assert {*BASELINES, BEAMER.name, "least"} <= set(read(FOLDER / f"{kind.name}-{seed}.json"))
        found = simulated(kind.name, list(seeds))
        assert found["least"]["reduction"] > found[BEAMER.name]["reduction"] > 0

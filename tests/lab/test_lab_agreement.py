"""The testbed takes as long as the simulator says; ``scripts/bench agreement`` asks it of every policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agreement import TOLERANCE, experiment, simulated_seconds
from topologies.lab import run_arms


@pytest.mark.usefixtures("alone")
def test_a_job_takes_as_long_on_the_testbed_as_in_the_simulator(tmp_path: Path) -> None:
    # One class, and an order that learns.
    arms = run_arms(experiment(), ["fair", "jpas"], results_dir=tmp_path).arms
    for arm in arms:
        expected = simulated_seconds(arm.policy)
        assert {name: job.jct_seconds for name, job in arm.jobs.items()} == pytest.approx(expected, rel=TOLERANCE), arm

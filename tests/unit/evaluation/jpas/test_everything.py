"""The policy that knows everything: its order, and how a controller finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from controller.model import Demand, Host, Job, Progress, Snapshot
from controller.policies.base import OptionError
from controller.policies.registry import available
from evaluation.jpas.everything import PLUGIN, Everything, milestones
from topologies import checkout

HOSTS = {"h1": Host("h1", 1e8, 1e8), "h2": Host("h2", 1e8, 1e8)}


def job(name: str, done: float, total: float = 100.0, size: float = 1e6) -> Job:
    seen = (Progress(done, done, 0.5),)
    return Job(name, (Demand("h1", "h2", size),), iterations_left=total - done, iterations_total=total, progress=seen)


def order(policy: Everything, *jobs: Job) -> list[str]:
    return [name for (name,) in policy.order(Snapshot(0.0, HOSTS, jobs), None).bands]


def test_the_nearest_milestone_goes_first_and_who_has_all_behind_goes_last() -> None:
    policy = Everything(milestones={"near": (10, 20), "far": (60, 80), "past": (5, 6)})
    assert order(policy, job("past", 10), job("far", 10), job("near", 5)) == ["near", "far", "past"]
    assert order(policy, job("near", 5, size=1e8), job("far", 10)) == ["far", "near"]


def test_a_job_that_is_not_known_is_refused() -> None:
    with pytest.raises(OptionError, match="milestones: there are none of job b"):
        order(Everything(milestones={"a": (1, 2)}), job("b", 1))


def test_milestones_are_where_the_curve_gets_there() -> None:
    rising = tuple(min(k / 50, 1.0) for k in range(1, 101))
    assert milestones({"a": rising}) == {"a": [46, 49]}


def test_it_is_not_installed_but_found_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Everything.name not in available()
    monkeypatch.setattr(sys, "path", [str(PLUGIN), *sys.path])
    (entry,) = [e for e in entry_points(group="trainyard.policies") if e.name == Everything.name]
    assert entry.load() is Everything


def test_the_settings_take_a_policy_whose_options_are_required(tmp_path: Path) -> None:
    def check(options: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "settings.yaml"
        file.write_text(f"policy: everything\n{options}")
        # A process of its own: policies are looked for once.
        return subprocess.run(
            [sys.executable, "-m", "controller.cli.main", "check-config", file],
            check=False,
            env=os.environ | {"PYTHONPATH": str(PLUGIN)},
            cwd=checkout.ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert check("policy_options: {milestones: {job-1: [10, 20]}}\n").returncode == 0
    refused = check("")
    assert refused.returncode == 2
    assert "policy_options: policy everything needs the option milestones" in refused.stderr

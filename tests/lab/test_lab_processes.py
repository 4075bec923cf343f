"""A process and a cgroup a job: every trainer in its job's group, jobs apart, nothing left at the end."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from simulator.workloads import curves
from topologies import cgroups, teardown
from topologies.experiment import Experiment, JobPlan
from topologies.lab import run_arms

ITERATIONS = 20


def experiment() -> Experiment:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common = {"model": "m", "compute_seconds": 0.2, "iterations": ITERATIONS, "curve": curve, "model_bytes": 100_000}
    return Experiment(
        name="apart", hosts=3, link_bps=50e6, period_seconds=0.5, limit_seconds=90.0, processes="job",
        jobs=(
            JobPlan(id="first", arrival=0.0, architecture="ps", hosts=("h1", "h2"), port=5000, **common),
            JobPlan(id="second", arrival=0.0, architecture="ring", hosts=("h1", "h2", "h3"), port=5001, **common),
        ),
    )  # fmt: skip


def members() -> dict[str, set[int]]:
    """The processes in every job's group that a lab has made, by the group's name."""
    found: dict[str, set[int]] = {}
    for hierarchy in cgroups.hierarchies(cgroups.MOUNTS.read_text()):
        for group in hierarchy.glob("trainyard-*/*/cgroup.procs"):
            # A group may go while it is read.
            lines = subprocess.run(["cat", group], capture_output=True, text=True, check=False).stdout.split()
            found.setdefault(group.parent.name, set()).update(map(int, lines))
    return found


def groups_left() -> list[Path]:
    hierarchies = cgroups.hierarchies(cgroups.MOUNTS.read_text())
    return [group for hierarchy in hierarchies for group in hierarchy.glob("trainyard-*")]


@pytest.mark.usefixtures("alone")
def test_every_jobs_trainers_are_in_a_group_of_their_own(tmp_path: Path) -> None:
    seen: dict[str, dict[int, str]] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            for job, pids in members().items():
                for pid in pids:
                    try:
                        text = Path(f"/proc/{pid}/cgroup").read_text()
                    except OSError:
                        continue
                    seen.setdefault(job, {})[pid] = text
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        result = run_arms(experiment(), ["fair", "fifo"], results_dir=tmp_path)
    finally:
        ended.set()
        watcher.join()
    assert [arm.policy for arm in result.arms] == ["fair", "fifo"]
    assert not any(job.censored for arm in result.arms for job in arm.jobs.values())
    # Two arms: a process for every host of a job in each.
    assert {job: len(pids) for job, pids in seen.items()} == {"first": 4, "second": 6}
    for job, texts in seen.items():
        assert all(re.search(rf"/trainyard-[0-9a-f]+/{job}$", text, re.MULTILINE) for text in texts.values()), texts
    assert not set(seen["first"]) & set(seen["second"])
    assert not set(seen["first"].values()) & set(seen["second"].values()), "two jobs in one group"
    names = {path.name for path in (tmp_path / "apart-0" / "fair" / "trainers").iterdir()}
    assert names == {"h1-first.log", "h2-first.log", "h1-second.log", "h2-second.log", "h3-second.log"}
    assert groups_left() == []
    assert teardown.recorded() is None

"""The lab's command, with a process and a cgroup a job: each in its group, apart, nothing left, one JSON document.

Its options give the hosts two interfaces each, and addresses of both families.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from simulator.workloads import curves
from topologies import cgroups, teardown
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.results import save

ITERATIONS = 12


def experiment() -> Experiment:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common = {"model": "m", "arrival": 0.0, "iterations": ITERATIONS, "curve": curve, "model_bytes": 100_000}
    brief, endless = common | {"compute_seconds": 0.2}, common | {"compute_seconds": 100.0}
    return Experiment(
        name="apart", hosts=3, link_bps=50e6, period_seconds=0.5, limit_seconds=12.0, processes="job",
        jobs=(
            JobPlan(id="first", architecture="ps", hosts=("h1", "h2"), port=5000, **brief),
            JobPlan(id="second", architecture="ring", hosts=("h1", "h2", "h3"), port=5001, **brief),
            # The limit comes before its end.
            JobPlan(id="endless", architecture="ring", hosts=("h2", "h3"), port=5002, **endless),
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
    spec, out = tmp_path / "spec.json", tmp_path / "out"
    save(spec, experiment())
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
        told = subprocess.run(
            [*(sys.executable, "-m", "controller.cli.main", "lab", "--policy", "fair", "--json"),
             *("--addresses", "both", "--rails", "2", "--results", str(out), str(spec))],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        ended.set()
        watcher.join()
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert (result["addresses"], result["rails"]) == ("both", 2)
    (arm,) = result["arms"]
    # A job sends as much over each rail.
    shares = {link["interface"]: link["egress_share"] for link in arm["links"]}
    for host in ("h1", "h2", "h3"):
        first, second = shares[f"{host}-eth0"], shares[f"{host}-eth1"]
        assert 0.9 < first / second < 1.1, shares
        assert first > 1e-3, shares
    assert arm["policy"] == "fair"
    assert {name: job["censored"] for name, job in arm["jobs"].items()} == {
        "first": False, "second": False, "endless": True,
    }  # fmt: skip
    assert arm["jobs"]["endless"]["jct_seconds"] is None
    # A process for every host of a job.
    assert {job: len(pids) for job, pids in seen.items()} == {"first": 2, "second": 3, "endless": 2}
    for job, texts in seen.items():
        assert all(re.search(rf"/trainyard-[0-9a-f]+/{job}$", text, re.MULTILINE) for text in texts.values()), texts
    assert not set(seen["first"]) & set(seen["second"])
    assert not set(seen["first"].values()) & set(seen["second"].values()), "two jobs in one group"
    names = {path.name for path in (out / "apart-0" / "fair" / "trainers").iterdir()}
    assert names == {f"{host}-{job.id}.log" for job in experiment().jobs for host in job.hosts}
    assert groups_left() == []
    assert teardown.recorded() is None

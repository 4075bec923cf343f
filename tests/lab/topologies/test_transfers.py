"""The trainer's own push and pull take bytes / rate, each; an iteration takes no more than they and computing."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from simulator.workloads import curves
from tests.support.lab.network_helpers import LINK_BPS
from tests.support.paths import ROOT
from topologies.emulation import Emulation
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.lab import run_arms
from topologies.lab.solo_times import ideal_iteration_seconds

BYTES = 2_000_000
COUNT = 5
LONE_BYTES, ITERATIONS = 1_000_000, 12
ON_THE_WIRE = 1.06
"""Of a payload byte: Ethernet, IP and TCP headers."""


@pytest.mark.usefixtures("controller")
def test_a_push_and_a_pull_of_the_trainer_take_bytes_over_rate(testbed: Emulation) -> None:
    def start(host: str, role: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.lab.transfer_cases", role, str(BYTES), str(COUNT)]
        return testbed.popen(host, command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    started = {"push": start("h1", "server"), "pull": start("h2", "worker")}
    ideal = BYTES * 8 / LINK_BPS
    for direction, process in started.items():
        out, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint
        seconds = json.loads(out)
        assert len(seconds) == COUNT
        # What the socket held when the first byte was read has come in no time: a few hundred kilobytes at most.
        typical = statistics.median(seconds[1:])
        assert 0.8 * ideal < typical < 1.1 * ON_THE_WIRE * ideal, (direction, seconds)


@pytest.mark.usefixtures("alone")
def test_an_iteration_of_a_lone_job_is_computing_and_two_transfers(tmp_path: Path) -> None:
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)

    def job(*hosts: str) -> JobPlan:
        return JobPlan(
            id=f"workers-{len(hosts) - 1}", arrival=0.0, architecture="ps", hosts=hosts, port=5000,
            model="m", model_bytes=LONE_BYTES, compute_seconds=0.1, iterations=ITERATIONS, curve=curve,
        )  # fmt: skip

    # No link of one is a link of the other.
    jobs = (job("h1", "h2"), job("h3", "h4", "h5", "h6"))
    experiment = Experiment(name="lone", hosts=6, link_bps=LINK_BPS, limit_seconds=120.0, jobs=jobs)
    (arm,) = run_arms(experiment, ["fair"], results_dir=tmp_path).arms
    for lone in jobs:
        times = [seconds for seconds, _iteration, _metric in arm.jobs[lone.id].history]
        # A processor that others use makes iterations longer, and none shorter.
        durations = [after - before for before, after in pairwise(times[2:])]
        quick, each = min(durations), statistics.median(durations)
        ideal = ideal_iteration_seconds(lone, LINK_BPS)
        # One of several workers that has its pull already pushes while the others still pull: that much may be saved.
        least = 0.9 if len(lone.hosts) == 2 else 0.7
        assert least * ideal < each, (lone.id, each, ideal)
        assert quick < 0.1 + (ideal - 0.1) * ON_THE_WIRE * 1.25, (lone.id, quick, ideal)

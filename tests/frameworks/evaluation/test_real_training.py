"""The trainings of ``scripts/evaluate real``, with this machine's own namespace as every host of the testbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from evaluation.bench.support.free_port import free_port
from evaluation.real import rank as rank_process
from evaluation.real import training
from evaluation.real.history import read_history, times
from evaluation.real.job import RankUse, RealJob
from evaluation.real.workload import FULL, QUICK, generate, parameters
from host_reporter.jobs.job_file import read_job_file
from tests.support.paths import ROOT
from topologies.fork_server import ForkedProcess, ForkServer
from topologies.trainer.start import Meeting

ARRIVAL = 1.5
GROUP = "/no/such/group"


def job(**changes: object) -> RealJob:
    plan = {
        "id": "digits", "arrival": ARRIVAL, "hosts": ("h1", "h2"), "model": "mlp", "width": 32, "batch": 32,
        "learning_rate": 0.1, "iterations": 300, "seed": 5,
    }  # fmt: skip
    return RealJob(**{**plan, **changes})  # type: ignore[arg-type]


@pytest.fixture
def fork_server():
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluation.real.fork_server"],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    made = ForkServer(process, 120.0)
    yield made
    made.close()


def start(fork_server: ForkServer, plan: RealJob, folder: Path) -> list[ForkedProcess]:
    (folder / "meeting").mkdir()
    port, members = free_port(), []
    for rank, host in enumerate(plan.hosts):
        arguments = [
            "--job", plan.id, "--rank", str(rank), "--master", f"127.0.0.1:{port}", "--hosts", ",".join(plan.hosts),
            "--interface", "lo", "--cgroup", GROUP, "--jobs-dir", str(folder / "jobs.d" / host),
            "--progress-dir", str(folder / "progress" / host), "--meet", str(folder / "meeting"),
            "--arrival", str(plan.arrival), "--iterations", str(plan.iterations),
            "--out", str(folder / "ranks" / f"{rank}.json"), "--", *plan.script_arguments,
        ]  # fmt: skip
        members.append(
            fork_server.start("job", arguments, namespaces_of=os.getpid(), log=folder / f"{rank}.log", folder=folder)
        )
    return members


def said(folder: Path) -> list[str]:
    return [log.read_text() for log in sorted(folder.glob("*.log"))]


def wait_ready(members: list[ForkedProcess], folder: Path) -> Meeting:
    meeting = Meeting(folder / "meeting")
    wait(lambda: not meeting.missing(frozenset({"digits-0", "digits-1"})), members, folder)
    return meeting


def wait_ended(members: list[ForkedProcess], folder: Path) -> None:
    wait(lambda: all(member.poll() == 0 for member in members), members, folder)


def wait(condition, members: list[ForkedProcess], folder: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert all(member.poll() in {None, 0} for member in members), said(folder)
        if time.monotonic() > deadline:
            # They write where they are.
            for member in members:
                member.send_signal(signal.SIGABRT)
            time.sleep(1.0)
            pytest.fail("\n".join(said(folder)))
        time.sleep(0.02)


@pytest.mark.skipif(os.geteuid() != 0, reason="to enter namespaces needs root")
def test_a_training_waits_for_its_arrival_and_its_callback_tells_all_that_is_measured(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    plan = job()
    members = start(fork_server, plan, tmp_path)
    meeting = wait_ready(members, tmp_path)
    files = [tmp_path / "jobs.d" / host / "digits.json" for host in plan.hosts]
    assert not any(file.exists() for file in files), "the agents know of the job before it arrives"
    begin = time.time() + 0.2
    meeting.begin(begin)
    told: dict[Path, str] = {}

    def both_told() -> bool:
        for file in files:
            if file.exists():
                told[file] = file.read_text()
        return len(told) == 2

    wait(both_told, members, tmp_path)
    assert time.time() >= begin + ARRIVAL
    # What agents are told is a job file: no port, no flow, no byte.
    first, second = (read_job_file(file, told[file], tmp_path / "progress") for file in files)
    assert first.spec is not None and second.spec is None
    assert [(task.host, task.port) for task in first.spec.tasks] == [("h1", None), ("h2", None)]
    assert (first.spec.demand, first.spec.flows, first.spec.iterations) == ((), (), 300)
    assert first.spec.arrival == pytest.approx(begin + ARRIVAL, abs=0.01)
    assert all(found.processes is not None and found.processes.cgroup == GROUP for found in (first, second))

    wait_ended(members, tmp_path)
    assert not any(file.exists() for file in files)
    assert not (tmp_path / "progress" / "h2").exists(), "rank 0 alone tells"
    history = read_history(tmp_path / "progress" / "h1" / "digits.jsonl", begin + ARRIVAL)
    assert [iteration for _, iteration, _ in history.points] == list(range(2, 301, 2))
    assert history.points[0][0] > -0.01, "the first step was before the arrival"
    result = times(history, done=True, watched_seconds=100.0)
    assert result.history[-1][2] > 0.8
    assert result.t90_seconds is not None and result.jct_seconds is not None
    assert 0 < result.t90_seconds < result.jct_seconds
    for rank in range(2):
        use = RankUse(**json.loads((tmp_path / "ranks" / f"{rank}.json").read_text()))
        assert (use.job, use.rank) == ("digits", rank)
        assert 0 < use.cpu_seconds < 2 * use.seconds
        assert use.waited_seconds is not None and use.waited_seconds >= 0
        assert use.seconds == pytest.approx(result.jct_seconds, abs=5.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="to enter namespaces needs root")
def test_the_same_seed_trains_the_same(fork_server: ForkServer, tmp_path: Path) -> None:
    curves = []
    for run in ("a", "b"):
        folder = tmp_path / run
        folder.mkdir()
        members = start(fork_server, job(arrival=0.0, iterations=20, model="cnn", width=4), folder)
        wait_ready(members, folder).begin(time.time())
        wait_ended(members, folder)
        points = read_history(folder / "progress" / "h1" / "digits.jsonl", 0.0).points
        curves.append([(iteration, metric) for _, iteration, metric in points])
    assert curves[0] == curves[1]


def test_models_have_as_many_parameters_as_the_workload_counts() -> None:
    for plan in (*generate(FULL, 3), *generate(FULL, 4), *generate(QUICK, 1)):
        model = training.make(plan.model, plan.width)
        assert sum(one.numel() for one in model.parameters()) == parameters(plan.model, plan.width)
        assert model(torch.zeros(2, 64)).shape == (2, 10)


def test_waiting_for_a_processor_is_counted_thread_by_thread() -> None:
    before = rank_process.waits()
    assert before is not None
    assert str(os.getpid()) in before
    waited = rank_process.waited_seconds(before, rank_process.waits())
    assert waited is not None
    assert 0 <= waited < 60
    # One thread has ended, one is new.
    assert rank_process.waited_seconds({"1": 5_000_000_000, "2": 10}, {"1": 6_000_000_000, "3": 500_000_000}) == 1.5
    assert rank_process.waited_seconds(None, {}) is None

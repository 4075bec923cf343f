"""``scripts/demo`` from its command line to its files; the lab ends at the box's process boundary."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation import demo, demo_jobs, plots
from evaluation.bench.support.waiting import wait_until
from tests.support.fake_kernel import FakeKernel, lives
from tests.support.paths import ROOT
from topologies.lab import agents, arm
from topologies.lab.queue_proof import QueueProof
from topologies.lab.results import ArmResult, Control, JobResult, LabResult
from topologies.lab.use import watch

PNG = b"\x89PNG"


def job(t90: float | None) -> JobResult:
    history = tuple((2.0 * k, k, 0.09 * k) for k in range(1, 11))
    done = None if t90 is None else t90 + 1.0
    return JobResult(t90, done, done, t90 is None, 40.0, history)


def result(fair: dict[str, float | None], jpas: dict[str, float | None]) -> LabResult:
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    arms = tuple(
        ArmResult("demo-1", 1, name, {k: job(v) for k, v in times.items()}, control, (1,) * 8, 0.5, 40.0)
        for name, times in (("fair", fair), ("jpas", jpas))
    )
    return LabResult("kernel", 13, 1e8, 8, QueueProof(95e6, 1e6), {}, arms)


def test_the_demo_leaves_a_table_a_plot_and_a_summary(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    assert demo.main(["--datapath", "uml", "--results", str(tmp_path / "out")]) == 0
    told = capsys.readouterr()
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert document["testbed"] == {"hosts": 13, "datapath": "uml", "link_bps": 1e8, "queues": 8}
    assert document["queue_proof"]["ratio"] == pytest.approx(95)
    assert document["reduction"]["t90"] == pytest.approx(0.5)
    assert document["command"].startswith("scripts/demo --datapath uml")
    assert list(document["policies"]) == ["fair", "jpas"]
    assert len(document["policies"]["jpas"]["jobs"]) >= 8
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(PNG)
    assert "mean t90 50% shorter" in told.out
    assert "95 : 1" in told.out
    assert all(name in told.out for name in document["policies"]["fair"]["jobs"])
    assert "About five minutes" in " ".join(told.err.split())
    last = told.out.splitlines()[-1]
    assert last == f"both runs, side by side: .venv/bin/trainyard console {tmp_path / 'out'}", "in one line"


def test_the_command_for_the_replay_is_that_of_the_checkout(tmp_path: Path) -> None:
    assert demo.replay_command(ROOT / "results" / "demo") == ".venv/bin/trainyard console results/demo"
    assert demo.replay_command(tmp_path / "my demo") == f".venv/bin/trainyard console '{tmp_path / 'my demo'}'"
    assert (ROOT / ".venv" / "bin" / "trainyard").exists()


def test_it_ends_within_six_minutes_even_if_no_job_does() -> None:
    to_end = watch.GRACE_SECONDS + agents.STOP_SECONDS + arm._LAST_REPORTS_SECONDS
    assert 2 * (arm.START_SECONDS + demo_jobs.LIMIT_SECONDS + to_end) + 100 <= 360


def test_its_jobs_are_retrained_and_half_of_them_have_a_target() -> None:
    jobs = demo_jobs.demo_wave(period_seconds=1.0)
    assert len(jobs.experiment.jobs) == 8
    assert {job.architecture for job in jobs.experiment.jobs} == {"ps", "ring"}
    assert len({job.model for job in jobs.experiment.jobs}) >= 5
    ended = {job.family for job in jobs.experiment.earlier}
    assert {jobs.families[job.id] for job in jobs.experiment.jobs} <= ended
    told = demo_jobs.known(jobs)
    assert sum("target" in words for words in told.values()) == 4
    assert all("earlier run" in words for words in told.values())


def test_a_lab_that_fails_ends_with_status_1_and_one_line(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    kernel.order(fail=("all",))
    assert demo.main(["--datapath", "uml", "--results", str(tmp_path / "out")]) == 1
    assert "demo: arms went wrong" in capsys.readouterr().err
    assert not (tmp_path / "out" / "summary.json").exists()


def test_the_table_tells_of_jobs_that_did_not_get_there(capsys) -> None:
    found = result({"a": 10.0, "b": 20.0}, {"a": 30.0, "b": None})
    demo.show(found, demo.demo_summary(found, "scripts/demo"), {"a": "2 earlier runs", "b": "nothing"})
    told = " ".join(capsys.readouterr().out.split())
    assert "2 earlier runs" in told
    assert "jpas: b missed a target" in told
    assert "fair: " not in told
    assert "mean t90 133% longer" in told


@pytest.mark.parametrize("jobs", [1, 12])
def test_the_plot_takes_few_jobs_and_many_and_censored_ones(tmp_path: Path, jobs: int) -> None:
    times: dict[str, float | None] = {f"job{n}": 10.0 + n for n in range(jobs)}
    found = result(times, times | {"job0": None})
    plots.demo(found, tmp_path / "new" / "demo.png")
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(PNG)
    nobody = replace(found, arms=tuple(replace(a, jobs={"a": replace(job(None), history=())}) for a in found.arms))
    plots.demo(nobody, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(PNG)


def test_the_evaluations_plot_takes_intervals_that_are_not_known(tmp_path: Path) -> None:
    nan = float("nan")
    one = {"t90": {"reduction": 0.3, "reduction_ci95": [0.2, 0.4]}}
    lone = {"t90": {"reduction": -0.1, "reduction_ci95": [nan, nan]}}
    loads = {"light": {"jpas": lone}, "middle": {"jpas": one, "fifo": lone}}
    plots.reductions(loads, ("jpas", "fifo", "las"), tmp_path / "claim.png")
    assert (tmp_path / "claim.png").read_bytes().startswith(PNG)


SPEC = {
    "name": "x", "jobs": [{
        "id": "a", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"], "port": 5000, "model": "m",
        "model_bytes": 1000, "compute_seconds": 0.1, "iterations": 10, "curve": "digits-linear-40",
    }],
}  # fmt: skip


@pytest.mark.parametrize("program", ["demo", "lab"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_the_parent_alone_takes_everything_down(
    kernel: FakeKernel, tmp_path: Path, program: str, number: signal.Signals, status: int
) -> None:
    kernel.order(hang=True)
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    command = {
        "demo": ["-m", "evaluation.demo", "--datapath", "uml"],
        "lab": [
            "-m",
            "controller.cli.main",
            "lab",
            "--datapath",
            "uml",
            "--policy",
            "fair",
            str(tmp_path / "spec.json"),
        ],
    }[program]
    with subprocess.Popen(
        [sys.executable, *command, "--results", str(tmp_path / "out")],
        cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: len(kernel.runs()) == 1, 200.0)
            os.kill(process.pid, number)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == status
    assert f"{program}: stopped; everything was taken down" in said
    assert "Traceback" not in said
    wait_until(lambda: not any(map(lives, kernel.processes())), 200.0)

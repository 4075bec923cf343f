"""The trainer as it is run: a process a host, on loopback."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from simulator.reports import targets
from simulator.workloads import curves
from tests.support.paths import ROOT
from topologies.trainer import barriers
from topologies.trainer.__main__ import load_experiment, main
from topologies.trainer.calls import Call, Calls, call
from topologies.trainer.job_recorder import PATTERN
from topologies.trainer.results import JobResult, read_result
from topologies.trainer.runner import InputError, Options, tasks
from topologies.trainer.start import Meeting, Start
from topologies.trainer.transfers.task import Addresses

CURVE = max(curves.index(), key=lambda curve: curve.iterations)
LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO \S.*$")
_networks = itertools.count(1)


def job(name: str, architecture: str, hosts: tuple[str, ...], **changes: object) -> dict[str, object]:
    return {
        "id": name, "arrival": 0.0, "architecture": architecture, "hosts": list(hosts), "port": 5001, "model": "small",
        "model_bytes": 30_001, "compute_seconds": 0.005, "iterations": 8, "curve": CURVE.name,
    } | changes  # fmt: skip


class Lab:
    """Trainers of some hosts, and the folder that they write to."""

    def __init__(self, folder: Path, jobs: list[dict[str, object]], limit: float = 60.0, **more: object) -> None:
        self.folder = folder / "run"
        self.file = folder / "experiment.json"
        self.file.write_text(json.dumps({"name": "test", "hosts": 4, "limit_seconds": limit, "jobs": jobs} | more))
        self.base = f"127.{1 + os.getpid() % 250}.{200 + next(_networks)}.0"
        self.trainers: dict[str, subprocess.Popen[str]] = {}

    def start(self, *hosts: str, options: tuple[str, ...] = (), meet: Path | None = None) -> None:
        when = ("--start", repr(time.time())) if meet is None else ("--meet", str(meet))
        for host in hosts:
            self.trainers[host] = subprocess.Popen(
                [sys.executable, "-m", "topologies.trainer", "--experiment", str(self.file), "--host", host,
                 *when, "--dir", str(self.folder), "--address-base", self.base, *options],
                cwd=ROOT, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

    def wait(self, host: str) -> tuple[int, str]:
        _, errors = self.trainers[host].communicate(timeout=20)
        return self.trainers[host].returncode, errors

    def result(self, name: str) -> JobResult:
        return read_result(self.folder / "done" / f"{name}.json")

    def job_file(self, host: str, name: str) -> Path:
        return self.folder / "jobs.d" / host / f"{name}.json"

    def iterations_logged(self, name: str) -> int:
        log = self.folder / "logs" / f"{name}.log"
        return len(re.findall(PATTERN, log.read_text())) if log.exists() else 0


@pytest.fixture
def lab(tmp_path):
    made: list[Lab] = []

    def make(jobs: list[dict[str, object]], limit: float = 60.0, **more: object) -> Lab:
        made.append(Lab(tmp_path, jobs, limit, **more))
        return made[-1]

    yield make
    for trainer in (trainer for each in made for trainer in each.trainers.values()):
        if trainer.poll() is None:
            trainer.kill()
        trainer.communicate()


def test_two_jobs_train_side_by_side_to_their_end(lab):
    run = lab([
        job("server", "ps", ("h1", "h2", "h3")),
        job("ring", "ring", ("h2", "h3", "h1"), port=5002, arrival=0.2),
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    output = {host: run.wait(host) for host in run.trainers}
    assert {status for status, _ in output.values()} == {0}
    full_run = curves.replay(curves.load(CURVE.name), 8)
    expected = [(i, metric) for i, metric in enumerate(full_run, start=1)]
    for name, compute in (("server", 0.005), ("ring", 0.005)):
        result = run.result(name)
        assert [(i, metric) for _, i, metric in result.history] == expected
        seconds = [point[0] for point in result.history]
        assert seconds == sorted(seconds)
        assert seconds[-1] - seconds[0] >= 7 * compute
        assert (result.jct, result.censored, result.capped, result.failed) == (seconds[-1], False, False, None)
        times = targets.job_times(result.history, full_run, result.jct)
        assert times.jct == result.jct
        lines = (run.folder / "logs" / f"{name}.log").read_text().splitlines()
        assert all(LINE.match(line) for line in lines)
        matches = [match for line in lines if (match := re.search(PATTERN, line))]
        assert [(int(m["iteration"]), float(m["metric"])) for m in matches] == expected
    assert not list(run.folder.glob("jobs.d/*/*"))
    for host, size in {"h1": 8 * 2 * 30_001, "h2": 8 * 30_001, "h3": 8 * 30_001}.items():
        assert f"job server: done on {host}, {size} bytes sent, {size} received" in output[host][1]
    sent = [int(re.search(r"job ring: done on h\d, (\d+) bytes sent", text)[1]) for _, text in output.values()]
    assert sum(sent) == 8 * 4 * 30_001


def test_a_curve_that_the_experiment_holds_is_replayed_and_logged_as_it_is(lab):
    rows = [-1.25, 1e-9, 3e20, 0.123456789]
    run = lab([job("own", "ps", ("h1", "h2"), curve=rows)])
    run.start("h1", "h2")
    assert {run.wait(host)[0] for host in run.trainers} == {0}
    result = run.result("own")
    assert [metric for *_, metric in result.history] == [row for row in rows for _ in range(2)]
    assert result.curve == ""
    logged = re.findall(PATTERN, (run.folder / "logs" / "own.log").read_text())
    assert [float(metric) for _, metric in logged] == [metric for *_, metric in result.history]


def test_workers_tell_when_they_came_to_each_barrier_where_they_are_asked(lab):
    jobs = [job("server", "ps", ("h1", "h2", "h3")), job("ring", "ring", ("h1", "h2", "h3"), port=5002)]
    run = lab(jobs)
    document = json.loads(run.file.read_text()) | {"barriers": True}
    run.file.write_text(json.dumps(document))
    run.start("h1", "h2", "h3")
    assert {run.wait(host)[0] for host in run.trainers} == {0}
    moments = {rank: json.loads((run.folder / "barriers" / "server" / f"{rank}.json").read_text()) for rank in (1, 2)}
    for came in moments.values():
        assert len(came) == 8
        assert all(later - earlier >= 0.005 for earlier, later in itertools.pairwise(came))
    barrier_wait = barriers.read(run.folder, "server", 2)
    assert barrier_wait.barriers == 7
    spread = [abs(a - b) for a, b in zip(*moments.values(), strict=True)][1:]
    assert barrier_wait.mean_seconds == pytest.approx(sum(spread) / 14, abs=1e-5), "of two workers one waits"
    assert sorted(path.name for path in (run.folder / "barriers").iterdir()) == ["server"], (
        "only parameter servers have"
    )


SYNCS = ("bsp+overlap", "bsp+sasp", "ssp:2", "ssp:2+overlap", "ssp:2+sasp", "asp", "asp+overlap", "asp+sasp:1")


def test_workers_that_run_apart_or_overlap_train_to_the_end_with_all_bytes(lab):
    run = lab([
        job(f"job{n}", "ps", ("h1", "h2", "h3"), port=5001 + n, sync=sync, arrival=0.1 * n)
        for n, sync in enumerate(SYNCS)
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    output = {host: run.wait(host) for host in run.trainers}
    assert {status for status, _ in output.values()} == {0}, output
    for n, sync in enumerate(SYNCS):
        result = run.result(f"job{n}")
        assert [i for _, i, _ in result.history] == list(range(1, 9)), sync
        seconds = [point[0] for point in result.history]
        assert seconds == sorted(seconds)
        assert seconds[-1] >= 8 * 0.005
        assert (result.failed, result.censored) == (None, False)
        sent, received = map(
            int, re.search(rf"job job{n}: done on h2, (\d+) bytes sent, (\d+) rec", output["h2"][1]).groups()
        )
        assert sent == 8 * 30_001
        # A newer answer may stand for one that was still waiting.
        assert received <= 8 * 30_001
        if sync in {"bsp+overlap", "bsp+sasp", "ssp:2", "asp"}:
            assert received == 8 * 30_001


def test_a_job_with_sasp_that_is_stopped_or_loses_a_peer_ends_as_any_other(lab):
    run = lab([
        job("doomed", "ps", ("h1", "h3"), compute_seconds=0.1, iterations=400, sync="ssp:2+sasp"),
        job("stopped", "ps", ("h1", "h2"), port=5002, compute_seconds=0.1, iterations=400, sync="asp+sasp:2"),
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    wait_until(lambda: run.iterations_logged("doomed") >= 2 and run.iterations_logged("stopped") >= 2)
    run.trainers["h3"].kill()
    wait_until((run.folder / "done" / "doomed.json").exists)
    for host in ("h2", "h1"):
        run.trainers[host].send_signal(signal.SIGTERM)
    assert (run.wait("h1")[0], run.wait("h2")[0]) == (1, 0)
    doomed, stopped = run.result("doomed"), run.result("stopped")
    assert "h3" in doomed.failed
    assert (stopped.failed, stopped.censored) == (None, True)
    assert 2 <= len(stopped.history) < 400


def test_a_sync_that_cannot_be_is_refused_with_what_would_be_right(lab):
    for changes, why in (
        ({"sync": "sap"}, "it must be bsp, ssp:S"),
        ({"sync": "ssp:0"}, "with 0 it is bsp"),
        ({"sync": "bsp+sasp", "architecture": "ring"}, "needs a parameter server"),
    ):
        run = lab([job("a", "ps", ("h1", "h2")) | changes])
        with pytest.raises(InputError, match=re.escape(why)):
            load_experiment(run.file)


def test_the_job_file_is_there_while_the_job_runs_and_sigterm_ends_it_in_good_order(lab):
    run = lab([
        job("long", "ps", ("h2", "h1"), iterations=40, compute_seconds=1.0),
        job("late", "ring", ("h1", "h2"), port=5002, arrival=50.0),
    ])  # fmt: skip
    run.start("h1", "h2")
    wait_until(lambda: run.iterations_logged("long") >= 1)
    document = json.loads(run.job_file("h2", "long").read_text())
    spec = JobSpec.model_validate(document["spec"])
    assert document["id"] == "long"
    assert [(task.role, task.host, task.port) for task in spec.tasks] == [("ps", "h2", 5001), ("worker", "h1", None)]
    assert {(d.src, d.dst, d.bytes) for d in spec.demand} == {("h1", "h2", 30_001), ("h2", "h1", 30_001)}
    assert (spec.iterations, spec.compute_seconds, spec.model) == (40, 1.0, "small")
    assert abs(time.time() - spec.arrival) < 20
    assert re.search(document["progress"]["pattern"], Path(document["progress"]["log"]).read_text())["iteration"] == "1"
    assert not run.job_file("h1", "late").exists()
    # The worker's host goes first: what its server sees of that must not count as a failure.
    for host in ("h1", "h2"):
        run.trainers[host].send_signal(signal.SIGTERM)
    assert run.wait("h1")[0] == run.wait("h2")[0] == 0
    result = run.result("long")
    assert (result.censored, result.failed, result.jct) == (True, None, None)
    assert 1 <= len(result.history) < 40
    assert not run.job_file("h2", "long").exists()
    late = run.result("late")
    assert (late.censored, late.history, late.failed) == (True, (), None)


def test_the_limit_stops_and_the_cap_ends_early(lab):
    jobs = [job("slow", "ps", ("h1", "h2"), compute_seconds=60.0), job("quick", "ring", ("h1", "h2"), port=5002)]
    run = lab(jobs, limit=6.0)
    run.start("h1", "h2", options=("--iterations-cap", "3"))
    assert run.wait("h1")[0] == run.wait("h2")[0] == 0
    quick, slow = run.result("quick"), run.result("slow")
    assert [i for _, i, _ in quick.history] == [1, 2, 3]
    assert (quick.capped, quick.censored, quick.jct, quick.failed) == (True, False, None, None)
    assert (slow.censored, slow.failed, slow.history) == (True, None, ())
    assert 6.0 <= slow.ended < 60.0, "the limit ends it before it has computed once"


def test_a_job_whose_peer_dies_is_reported_and_the_others_go_on(lab):
    run = lab([
        job("doomed", "ps", ("h1", "h3"), compute_seconds=0.1, iterations=40),
        job("other", "ps", ("h1", "h2"), port=5002, compute_seconds=0.03, iterations=40),
    ])  # fmt: skip
    run.start("h1", "h2", "h3")
    wait_until(lambda: run.iterations_logged("doomed") >= 1)
    run.trainers["h3"].kill()
    status, output = run.wait("h1")
    assert status == 1
    assert "job doomed: failed on h1" in output
    doomed, other = run.result("doomed"), run.result("other")
    assert "h3" in doomed.failed
    assert (doomed.censored, doomed.jct) == (True, None)
    assert (len(other.history), other.failed, other.censored) == (40, None, False)
    assert run.wait("h2")[0] == 0


@pytest.mark.parametrize("architecture", ["ps", "ring"])
def test_a_studys_job_begins_when_it_is_called_and_one_that_nobody_calls_leaves_nothing(lab, architecture):
    study = {"name": "s", "arrival": 0.0, "trials": 2, "rungs": [3, 8], "eta": 2, "configurations": [CURVE.name]}
    jobs = [
        job(f"s.t{number}.r{rung}", architecture, ("h1", "h2", "h3"), port=5001 + 2 * number + rung,
            iterations=(3, 5)[rung], compute_seconds=0.2, curve="ignored",
            trial={"study": "s", "number": number, "rung": rung})
        for number in range(2) for rung in range(2)
    ]  # fmt: skip
    run = lab(jobs, studies=[study])
    run.start("h1", "h2", "h3")
    progress = run.folder / "progress" / "h1" / "s.t1.r1.jsonl"
    arrival = time.time() + 1.5
    call(run.folder, "s.t1.r1", Call(arrival=arrival, curve=CURVE.name, begin=3, total=8, stage="b0.r1"))
    wait_until(run.job_file("h1", "s.t1.r1").exists)
    assert time.time() >= arrival - 0.01
    document = json.loads(run.job_file("h1", "s.t1.r1").read_text())
    assert (document["study"], document["spec"]["iterations"]) == ("s", 5)
    assert "progress" not in document, "it is told by the helper"
    assert json.loads(progress.read_text().splitlines()[0])["stage"] == "b0.r1", "before the agent sees the job"
    wait_until((run.folder / "done" / "s.t1.r1.json").exists)
    result = run.result("s.t1.r1")
    whole = curves.replay(curves.load(CURVE.name), 8)
    assert [(i, metric) for _, i, metric in result.history] == list(enumerate(whole[3:], start=1))
    assert result.arrival_epoch == pytest.approx(arrival, abs=0.01)
    assert (result.curve, result.censored) == (CURVE.name, False)
    records = [json.loads(line) for line in progress.read_text().splitlines()]
    assert [record["iteration"] for record in records if "iteration" in record] == [1, 2, 3, 4, 5]
    assert records[0]["until"] == 5
    assert records[-1]["ended"] is True
    for host in run.trainers:
        run.trainers[host].terminate()
    assert {run.wait(host)[0] for host in run.trainers} == {0}
    assert [path.name for path in (run.folder / "done").iterdir()] == ["s.t1.r1.json"]
    assert not list(run.folder.glob("jobs.d/*/*"))


def test_one_job_of_the_host_can_be_run_alone(lab):
    run = lab([job("a", "ps", ("h1", "h2")), job("b", "ps", ("h1", "h2"), port=5002)])
    run.start("h1", "h2", options=("--job", "b"))
    assert run.wait("h1")[0] == run.wait("h2")[0] == 0
    assert [path.name for path in (run.folder / "done").iterdir()] == ["b.json"]


def test_trainers_that_meet_are_ready_before_they_are_told_the_start(lab, tmp_path):
    meeting = Meeting(tmp_path / "meeting")
    meeting.folder.mkdir()
    run = lab([job("a", "ps", ("h1", "h2")), job("b", "ring", ("h2", "h1"), port=5002, arrival=0.3)])
    run.start("h1", "h2", meet=meeting.folder)
    wait_until(lambda: not meeting.missing(frozenset({"h1", "h2"})))
    time.sleep(0.5)
    assert not (run.folder / "logs").exists(), "nothing begins before the start is told"
    start = time.time() + 0.5
    meeting.begin(start)
    assert run.wait("h1")[0] == run.wait("h2")[0] == 0
    for name, arrival in (("a", 0.0), ("b", 0.3)):
        assert run.result(name).arrival_epoch == pytest.approx(start + arrival, abs=0.01)
        began = run.result(name).history[0][0]
        assert 0 < began < run.result(name).jct < 10


def test_a_trainer_that_is_stopped_before_the_start_ends_in_good_order(lab, tmp_path):
    meeting = Meeting(tmp_path / "meeting")
    meeting.folder.mkdir()
    run = lab([job("a", "ps", ("h1", "h2"))])
    run.start("h1", options=("--job", "a"), meet=meeting.folder)
    wait_until(lambda: not meeting.missing(frozenset({"h1-a"})))
    run.trainers["h1"].send_signal(signal.SIGTERM)
    assert run.wait("h1")[0] == 0
    assert run.result("a").history == ()
    assert run.result("a").censored


def refusal(folder: Path, plan: dict[str, object], host: str = "h1", only: str | None = None) -> str:
    file = folder / "experiment.json"
    file.write_text(json.dumps({"name": "test", "hosts": 4, "jobs": [plan]}))
    with pytest.raises(InputError) as refused:
        options = Options(load_experiment(file), host, 0.0, folder, Addresses(IPv4Address("127.0.0.0")), only)
        tasks(options, Start(), Calls(folder))
    return str(refused.value)


def test_wrong_input_says_what_would_be_right(tmp_path):
    good = job("a", "ps", ("h1", "h2"))
    assert "no curve called '../x'" in refusal(tmp_path, good | {"curve": "../x"})
    assert "experiment.json:1: jobs[0].port" in refusal(tmp_path, good | {"port": 0})
    assert "h1..h4" in refusal(tmp_path, good, host="h9")
    assert "no job z; the experiment has a" in refusal(tmp_path, good, only="z")
    with pytest.raises(InputError, match=r"absent\.json: cannot be read"):
        load_experiment(tmp_path / "absent.json")


def test_wrong_input_ends_with_status_2_and_one_line(lab):
    run = lab([job("a", "ps", ("h1", "h2"))])
    run.start("h9")
    status, output = run.wait("h9")
    assert (status, output.count("\n")) == (2, 1)
    assert not run.folder.exists()


def command(monkeypatch: pytest.MonkeyPatch, file: Path, *options: str) -> int:
    """The trainer's command line, in this process; for what ends before anything starts."""
    words = ["trainer", "--experiment", str(file), "--host", "h1", "--dir", str(file.parent / "run"), *options]
    monkeypatch.setattr(sys, "argv", words)
    interval = sys.getswitchinterval()
    try:
        return main()
    finally:
        # The trainer sets it for its own threads, not for a test run's.
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("jobs: []\nname: !!bool foo\n", 2),
        ('name: x\nhosts: !!int ""\n', 2),
        ("name: x\n\nseed: !!timestamp foo\n", 3),
        ("name: x\njobs: " + "[" * 100_000, 2),
        ("[" * 100_000, 1),
        ("name: x\njobs: [\n", 3),
        ('{\n"name": "x",\n"jobs": 3}', 3),
        ("", 1),
    ],
)
def test_an_experiment_that_cannot_be_read_is_told_with_its_line(
    tmp_path, monkeypatch, capsys, suffix: str, text: str, line: int
):
    file = tmp_path / f"experiment.{suffix}"
    file.write_text(text)
    assert command(monkeypatch, file) == 2
    assert f"{file}:{line}: " in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_experiment_in_yaml_is_the_same_as_in_json(tmp_path):
    document = {"name": "test", "hosts": 4, "jobs": [job("a", "ps", ("h1", "h2"))]}
    for name in ("plan.json", "plan.yaml"):
        (tmp_path / name).write_text(json.dumps(document, indent=1))
    assert load_experiment(tmp_path / "plan.json") == load_experiment(tmp_path / "plan.yaml")


@pytest.mark.parametrize(
    "options",
    [
        ("--start", "inf"), ("--start", "nan"), ("--start", "-1"), ("--start", "1e300"), ("--start", "soon"),
        ("--connect-seconds", "inf"), ("--connect-seconds", "nan"), ("--connect-seconds", "-1"),
        ("--iterations-cap", "0"), ("--address-base", "10.0.0"),
    ],
)  # fmt: skip
def test_an_option_out_of_its_range_ends_with_status_2(tmp_path, monkeypatch, capsys, options: tuple[str, str]):
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps({"name": "test", "hosts": 4, "jobs": [job("a", "ps", ("h1", "h2"))]}))
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, file, *options)
    assert ended.value.code == 2
    assert f"argument {options[0]}: " in capsys.readouterr().err

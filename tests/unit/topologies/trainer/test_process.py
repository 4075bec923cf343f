"""The trainer as it is run: jobs begin, train and end, and whatever ends them early."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import pytest

from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from simulator.reports import targets
from simulator.workloads import curves
from tests.support.trainer.processes import CURVE, job
from topologies.trainer.calls import Call, call
from topologies.trainer.job_recorder import PATTERN
from topologies.trainer.results import first_failure
from topologies.trainer.start import Meeting

LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO \S.*$")


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
    assert first_failure(run.folder) == f"doomed on h1: {doomed.failed}"
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
    call(run.folder, "s.t1.r1", Call(arrival=arrival, curve=CURVE.name, begin=3, total=8, stage="b0.r1", rungs_left=2))
    wait_until(run.job_file("h1", "s.t1.r1").exists)
    assert time.time() >= arrival - 0.01
    document = json.loads(run.job_file("h1", "s.t1.r1").read_text())
    assert (document["study"], document["spec"]["iterations"]) == ("s", 5)
    assert "progress" not in document, "it is told by the helper"
    first = json.loads(progress.read_text().splitlines()[0])
    assert (first["stage"], first["rungs_left"]) == ("b0.r1", 2), "before the agent sees the job"
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

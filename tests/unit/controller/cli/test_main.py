from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from controller.cli.main import main
from controller.cli.output import fail, show_facts, show_table
from controller.wire import Explanation, JobAtPort, Message, PlanView, PortWait
from evaluation.bench.support.api_client import OPERATOR, Controller
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("cli")).start()
    body = {
        "tasks": [{"role": "ps", "host": "h1", "port": 5000}, {"role": "worker", "host": "h2"}],
        "demand": [{"src": "h2", "dst": "h1", "bytes": 1e6}],
    }
    controller.call("PUT", "/v1/jobs/a", body)
    point = {"iteration": 3, "time": 1.0, "metric": 0.25}
    report = {"session": "s", "seq": 1, "sent_at": 1.0, "jobs": [{"job": "a", "points": [point]}]}
    controller.call("POST", "/v1/hosts/h1/reports", report)
    wait_until(lambda: controller.call("GET", "/v1/jobs/a/explain").status_code == HTTPStatus.OK, what="a plan")
    yield controller
    controller.stop()


@pytest.fixture
def run(yard: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("TRAINYARD_URL", yard.url)
    monkeypatch.setenv("TRAINYARD_TOKEN", OPERATOR)

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return command


def test_jobs(run: Any) -> None:
    status, out, err = run("jobs")
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split() == ["job", "state", "class", "iterations", "metric", "stage"]
    assert "running" in out
    _, out, _ = run("jobs", "--json")
    assert json.loads(out)["jobs"][0]["id"] == "a"


def test_what_came_over_the_network_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("job",), [("acc\u001b[31m",)])
    show_facts([("job", "a\u009b31m")])
    assert fail("no\u001b[2J", 1) == 1
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert "\x9b" not in captured.out


def test_plan(run: Any) -> None:
    status, out, _ = run("plan")
    assert status == 0
    assert "policy     fifo\n" in out
    status, out, _ = run("plan", "--policy", "fair", "--json")
    assert json.loads(out)["applied"] is False
    assert run("plan", "--policy", "best")[0] == 2


@contextlib.contextmanager
def answering(message: Message) -> Iterator[str]:
    """The URL of a controller that answers every question with this message."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = message.model_dump_json().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_refused_plan_is_said(run: Any) -> None:
    errors = ("switch 1 refused a rule: its flow table is full",)
    view = PlanView(
        policy="fifo", options={}, applied=False, epoch=1, age_seconds=0.0, order=(), classes={}, reasons={},
        objective_seconds=0.0, lower_bound_seconds=0.0, inversions=3, errors=errors, mode="marked",
        degraded="the table is full",
    )  # fmt: skip
    with answering(view) as url:
        _, out, _ = run("plan", "--url", url)
    assert "policy      fifo (a newer plan is refused)\nrefused     switch 1 refused a rule" in out
    assert "inversions  3 pairs of jobs meet and share a class" in out
    assert "degraded    the table is full" in out


def test_what_a_job_declares_and_is_measured_otherwise_is_said(run: Any) -> None:
    answer = Explanation(
        job="a", policy="fifo", service_class=0, position=0, jobs_before=(), reason="it came first",
        bottleneck_port=None, bottleneck_seconds_per_iteration=0.0, iterations_done=1.0, iterations_left=2.0,
        problems=("it declares 1 byte",),
    )  # fmt: skip
    with answering(answer) as url:
        assert "problem     it declares 1 byte" in run("explain", "a", "--url", url)[1]


def test_what_a_job_waits_for_is_said(run: Any) -> None:
    others = tuple(JobAtPort(job=f"j{i}", service_class=i // 2, seconds_left=9.0 - i) for i in range(6))
    wait = PortWait(
        port="h1 ingress", own_seconds_per_iteration=0.1, own_seconds_left=1.0, seconds_before=30.0,
        seconds_beside=9.0, before=others, before_count=20, alike=others[4:], alike_count=2, after_count=3,
    )  # fmt: skip
    answer = Explanation(
        job="a", policy="fifo", service_class=2, position=6, jobs_before=(), reason="it came last",
        bottleneck_port="h1 ingress", bottleneck_seconds_per_iteration=0.1, iterations_done=1.0, iterations_left=10.0,
        ports=(wait, wait.model_copy(update={"before": (), "alike": ()})),
    )  # fmt: skip
    with answering(answer) as url:
        said = run("explain", "a", "--url", url)[1]
    jobs = "j0 (class 0) 9 s, j1 (class 0) 8 s, j2 (class 1) 7 s, j3 (class 1) 6 s, 16 more"
    assert f"waits       at h1 ingress, 30 s at most, for: {jobs}\n" in said
    assert "shares      h1 ingress, which delays it by 9 s at most, with: j4 (class 2) 5 s, j5 (class 2) 4 s\n" in said
    assert said.count("h1 ingress") == 3, "nothing is said of a port without others"


def test_a_jobs_target_and_its_divergence_are_said(run: Any, yard: Controller) -> None:
    body = {"tasks": [{"role": "worker", "host": "h3"}], "target": 0.92}
    yard.call("PUT", "/v1/jobs/aimed", body)
    report = {"session": "t", "seq": 1, "sent_at": 1.0, "jobs": [{"job": "aimed", "diverged": True}]}
    assert "accuracy none yet, target 0.92" in run("jobs")[1]
    yard.call("POST", "/v1/hosts/h3/reports", report)
    assert "running, diverged" in run("jobs")[1]
    wait_until(lambda: "diverged    yes" in run("explain", "aimed")[1], what="a plan that knows it")
    assert "target      0.92" in run("explain", "aimed")[1]
    yard.call("DELETE", "/v1/jobs/aimed")


def test_a_job_that_agents_have_found_is_shown_with_its_launcher(run: Any, yard: Controller) -> None:
    assert "found by" not in run("jobs")[1]
    for host in ("h1", "h2"):
        body = {"launcher": "slurm", "is_first": host == "h2", "hosts": ["h1", "h2", "gone-1", "gone-2"]}
        yard.call("PUT", f"/v1/jobs/slurm-7/parts/{host}", body)
    lines = run("jobs")[1].splitlines()
    assert lines[0].split("  ")[-1] == "found by"
    assert {line.split()[0]: line.split("  ")[-1].strip() for line in lines[1:]}["slurm-7"] == "slurm on 2 hosts"
    wait_until(lambda: run("explain", "slurm-7")[0] == 0, what="a plan")
    said = run("explain", "slurm-7")[1]
    assert "found by    slurm on h2 (rank 0), h1\n" in said
    assert "missing     gone-1, gone-2: slurm names them, and no agent has told of the job there\n" in said
    yard.call("DELETE", "/v1/jobs/slurm-7")


def test_explain(run: Any) -> None:
    status, out, _ = run("explain", "a")
    assert status == 0
    assert "h1 ingress, 8 ms an iteration" in out
    assert "enforced    no: no switch has connected\n" in out
    status, out, err = run("explain", "nobody")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "there is no job nobody" in err
    assert run("explain", "../status")[0] == 2


def test_explain_as_it_would_be(run: Any) -> None:
    status, out, _ = run("explain", "a", "--policy", "fair", "--weight", "2", "--target", "0.5")
    assert status == 0
    assert out.startswith("applied     no: as it would be with policy fair and weight 2 and target 0.5\n")
    assert "policy      fair\n" in out and "target      0.5\n" in out
    assert "enforced" not in out, "nothing of it is to be enforced"
    assert "\nas it is    weight 1: it waits 0 s at most: nobody is before it or beside it. Served after " in out
    assert "\nwith        weight 2, target 0.5, policy fair: no difference: it waits 0 s at most: nobody is " in out
    assert "\nto do       write weight: ... and target: ... into the job's file" in out
    status, out, err = run("explain", "a", "--weights", "2,4")
    assert [line.split()[1:3] for line in out.splitlines() if line.startswith("with ")] == [
        ["weight", "2:"],
        ["weight", "4:"],
    ]
    assert "\npolicy      fifo\n" in out, "all else is as it is now"
    status, out, err = run("explain", "a", "--weight", "-1")
    assert (status, out) == (2, "")
    assert "weight: '-1' is no number" in err


def test_probe_fails_without_a_switch(run: Any) -> None:
    status, _, err = run("probe")
    assert (status, err) == (1, "trainyard: no switch has connected\n")
    status, out, _ = run("probe", "--json")
    assert status == 1
    assert json.loads(out)["switches"] == []


def test_the_token(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_TOKEN", "wrong")
    assert run("jobs")[0] == 1
    (tmp_path / "token").write_text(OPERATOR + "\n")
    assert run("jobs", "--token-file", str(tmp_path / "token"))[0] == 0
    for refused in (["--token", OPERATOR], [f"--token={OPERATOR}"]):
        status, _, err = run("jobs", *refused)
        assert (status, err.count("\n")) == (2, 1)
        assert "everybody can read it in the process list" in err
        assert OPERATOR not in err
    status, _, err = run("jobs", "--token-file", str(tmp_path / "none"))
    assert status == 2
    assert "cannot be read" in err


def test_no_controller_is_one_line(run: Any) -> None:
    status, out, err = run("jobs", "--url", f"http://127.0.0.1:{free_port()}")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "Connection refused" in err
    assert run("jobs", "--url", "nonsense")[0] == 2
    assert run("jobs", "--url", "http://[::bad")[0] in (1, 2)


def test_something_else_on_the_port(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n<html>")

        thread = threading.Thread(target=answer)
        thread.start()
        status, _, err = run("jobs", "--url", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert status == 1
    assert "not as a Trainyard controller does" in err


def test_check_config(run: Any, tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("policy: fair\napi: {token: never-shown-anywhere}\n")
    status, out, _ = run("check-config", str(good))
    assert status == 0 and "enforce" in out and "up to 4000 rules for the flows of jobs at a switch" in out
    _, out, _ = run("check-config", "--json", str(good))
    assert json.loads(out)["policy"] == "fair"
    assert "never-shown" not in out
    costly = tmp_path / "costly.yaml"
    costly.write_text("dscp: dcb\n")
    status, out, _ = run("check-config", str(costly))
    assert status == 0 and "all settings are right" in out and "\ndscp " in out
    assert "serves these classes alike: 1 and 2, 3 and 4" in out
    _, out, err = run("check-config", "--json", str(costly))
    assert json.loads(out)["dscp"]["classes"] == [59, 47, 43, 39, 35, 19, 11]
    assert err.startswith("enforce: switches: they speak OpenFlow 1.3")
    assert "\ndscp: a network that looks at the precedence alone" in err
    bad = tmp_path / "bad.yaml"
    bad.write_text("policy: fair\nperod: 3\n")
    status, out, err = run("check-config", str(bad))
    assert (status, out) == (2, "")
    assert err.startswith(f"{bad}:2: perod: unknown key")
    assert run("controller", "--config", str(bad))[0] == 2


@pytest.mark.parametrize("arguments", [[], ["jobs", "--colour"], ["explain"], ["nonsense"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_a_reader_that_has_seen_enough(yard: Controller) -> None:
    environment = os.environ | {"TRAINYARD_URL": yard.url, "TRAINYARD_TOKEN": OPERATOR}
    command = f"{sys.executable} -m controller.cli.main jobs --json | true"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_trainyard_controller_becomes_the_controller(tmp_path: Path) -> None:
    config = tmp_path / "conf.yaml"
    command = [sys.executable, "-m", "controller.cli.main", "controller", "--config", str(config)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(f"policy: fair\napi: {{port: {port}}}\nopenflow: {{port: {free_port()}}}\n")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "already" in done.stderr or "in use" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr

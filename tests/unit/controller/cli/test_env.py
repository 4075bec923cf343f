"""``trainyard env`` against a real controller: what a launch gets, and why it gets nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controller.cli.main import main
from evaluation.bench.support.api_client import OPERATOR, Controller
from tests.support.controller.api.roles_yard import RolesYard

Run = Callable[..., tuple[int, str, str]]
JOB = {"tasks": [{"role": "ps", "host": "h1"}, {"role": "worker", "host": "h2"}]}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    """A controller with two DSCPs for jobs, with a caller of each role."""
    created = RolesYard(tmp_path_factory.mktemp("cli-env"), identity="dscp", dscp={"jobs": [43, 11]})
    try:
        yield created.start()
    finally:
        created.stop()


@pytest.fixture(scope="module")
def by_flows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller that knows jobs by their flows."""
    created = Controller(tmp_path_factory.mktemp("cli-env-flows"))
    try:
        yield created.start()
    finally:
        created.stop()


@pytest.fixture
def run(yard: RolesYard, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    monkeypatch.setenv("TRAINYARD_URL", yard.url)

    def command(*arguments: str, token: str = yard.tokens["night"]) -> tuple[int, str, str]:
        monkeypatch.setenv("TRAINYARD_TOKEN", token)
        status = main(("env", *arguments))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    yield command
    for job in yard.call("GET", "/v1/jobs").json()["jobs"]:
        yard.call("DELETE", f"/v1/jobs/{job['id']}")


def register(yard: Controller, job: str, **spec: Any) -> int:
    """Register a job. Returns its DSCP."""
    answer = yard.call("PUT", f"/v1/jobs/{job}", JOB | spec)
    assert answer.ok, answer.text
    return int(answer.json()["dscp"] or 0)


def test_a_line_for_each_variable(yard: RolesYard, run: Run) -> None:
    dscp = register(yard, "bert")
    status, out, err = run("bert")
    assert (status, err) == (0, "")
    values = {name: int(value) for name, value in (line.split("=") for line in out.splitlines())}
    assert values["TRAINYARD_DSCP"] == dscp
    assert values["NCCL_IB_TC"] == values["UCX_IB_TRAFFIC_CLASS"] == values["NVSHMEM_IB_TRAFFIC_CLASS"] == 4 * dscp
    assert values["NCCL_IB_FIFO_TC"] == 4 * 63


def test_lines_for_a_shell_and_a_document(yard: RolesYard, run: Run) -> None:
    register(yard, "bert")
    lines = run("bert")[1].splitlines()
    assert run("bert", "--export")[1].splitlines() == [f"export {line}" for line in lines]
    document = json.loads(run("bert", "--json")[1])
    assert document == {"job": "bert", "variables": dict(line.split("=") for line in lines)}
    status, out, err = run("bert", "--json", "--export")
    assert (status, out) == (2, "") and "give one of them" in err


def test_a_shared_dscp_is_given_and_said(yard: RolesYard, run: Run) -> None:
    given = [register(yard, name) for name in ("a", "b", "c")]
    assert given[1] == given[2]
    status, out, err = run("c")
    assert (status, f"TRAINYARD_DSCP={given[2]}\n" in out) == (0, True)
    assert f"trainyard: job c: it shares DSCP {given[2]} with" in err
    assert run("a")[2] == ""


def test_an_unknown_job(run: Run) -> None:
    status, out, err = run("nobody")
    assert (status, out) == (2, "")
    assert "there is no job nobody" in err and "registered or an agent has found it" in err


def test_a_job_that_comes_later_is_waited_for(yard: RolesYard, run: Run) -> None:
    later = threading.Timer(1.0, register, (yard, "later"))
    later.start()
    status, out, _ = run("later", "--wait", "60")
    later.join()
    assert (status, "NCCL_IB_TC=" in out) == (0, True)


def test_a_job_that_has_ended(yard: RolesYard, run: Run) -> None:
    register(yard, "short")
    report = {"session": "s", "seq": 1, "sent_at": time.time(), "jobs": [{"job": "short", "ended": True}]}
    assert yard.by("h1", "POST", "/v1/hosts/h1/reports", report).ok
    status, out, err = run("short")
    assert (status, out) == (1, ""), err
    assert "job short has ended" in err


def test_who_may_ask(yard: RolesYard, run: Run) -> None:
    register(yard, "vision-a", user="ann")
    register(yard, "other", user="cem")
    tenant = yard.tokens["vision"]
    assert run("vision-a", token=tenant)[0] == 0
    status, out, err = run("other", token=tenant)
    assert (status, out) == (2, "") and "there is no job other" in err
    status, out, err = run("other", token=yard.tokens["h1"])
    assert (status, out) == (1, "") and "the token of host h1 is for" in err
    status, out, err = run("other", token="wrong")
    assert (status, out) == (1, "") and err


def test_a_controller_with_another_identity(by_flows: Controller, run: Run) -> None:
    by_flows.call("PUT", "/v1/jobs/bert", JOB)
    status, out, err = run("bert", "--url", by_flows.url, token=OPERATOR)
    assert (status, out) == (1, "")
    assert "identity: dscp" in err and "without these variables" in err

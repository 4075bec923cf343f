"""The API where something is wrong: odd requests, claims of a host's token, refused plans, and its own failures."""

from __future__ import annotations

import io
import json
import math
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import eventlet
import pytest

from controller.api.access import Access
from controller.api.bodies import body
from controller.api.calls.state import readyz
from controller.api.dispatch import Api
from controller.api.http import HttpError, Reply
from controller.api.routes import Route
from controller.config.config import Config
from controller.dataplane.values import SwitchStatus
from controller.enforcement import Enforcement
from controller.loop.metrics import Metrics
from controller.model import Demand, Flow, Host, Job, Snapshot
from controller.planner import plan
from controller.policies.fifo import Fifo
from controller.process.callers import callers_of
from controller.wire import JobSpec
from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from tests.support.controller.api.cases import assert_problem, batch, spec


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("api-faults"), api={"host_jobs": "own"}).start()
    yield controller
    controller.stop()


def test_a_long_query_is_no_failure(yard: Controller) -> None:
    query = "?" + "&".join(f"a{i}=1" for i in range(25))
    assert yard.call("GET", "/healthz" + query, token="").status_code == 200
    assert_problem(yard.call("GET", "/v1/jobs" + query, token="wrong"), 401, "token")
    assert_problem(yard.call("GET", "/v1/jobs" + query), 400, "the query has more than 20 parameters")
    assert "Traceback" not in yard.log()


def test_every_form_of_a_target_is_answered_alike(yard: Controller) -> None:
    def read(line: str, token: str | None = OPERATOR) -> tuple[int, bytes]:
        header = f"Authorization: Bearer {token}\r\n" if token else ""
        answer = yard.raw(f"{line} HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n".encode())
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), rest

    def ask(line: str, token: str | None = OPERATOR) -> tuple[int, dict[str, Any]]:
        status, rest = read(line, token)
        return status, json.loads(rest)

    assert ask("GET http://yard/v1/jobs")[1] == {"jobs": []}
    assert ask("GET http://yard/v2")[1]["detail"].startswith("there is nothing at '/v2'")
    page = read("GET /")
    assert page[0] == 200
    assert read("GET HTTP://yard") == read("GET http://yard?x=1") == page
    assert ask("GET http://yard/v1/jobs", None)[0] == 401
    assert ask("OPTIONS *", None)[0] == 401
    status, problem = ask("OPTIONS *")
    assert (status, problem["detail"]) == (404, "there is nothing at '/*'; see /openapi.json")
    assert ask("GET v1/jobs")[0] == 400, "that is none of the four forms"
    assert ask("CONNECT yard:443", None)[0] == 401


def test_without_tokens_a_targets_own_name_counts(tmp_path: Path) -> None:
    yard = Controller(tmp_path, token=False).start()
    try:
        head = b"HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert yard.raw(b"GET http://evil.example/v1/jobs " + head).startswith(b"HTTP/1.1 403")
        assert yard.raw(b"GET http://127.0.0.1/v1/jobs " + head).startswith(b"HTTP/1.1 200")
        assert yard.process is not None
        yard.process.send_signal(signal.SIGINT)
        assert yard.process.wait(20) == 0
        assert "Traceback" not in yard.log()
    finally:
        yard.stop()


def test_a_wait_that_is_no_number_is_refused_with_and_without_a_tag(yard: Controller) -> None:
    for headers in ({}, {"If-None-Match": "x"}):
        for wait in (
            "abc",
            "nan",
            "inf",
            "-1",
            "61",
            "",
            "1_0",
            "+1",
            "%2B1",
            "%201",
            "1%20",
            "1e1",
            "0x1",
            ".5",
            "1.",
        ):
            reply = yard.call("GET", f"/v1/hosts/h1/plan?wait={wait}", headers=headers)
            assert_problem(reply, 422, "is no number from 0 to 60", "wait")
        for wait in ("\u0661", "1\u00b2", "\uff11"):  # digits, but not ASCII's
            reply = yard.call("GET", f"/v1/hosts/h1/plan?wait={quote(wait)}", headers=headers)
            assert_problem(reply, 422, "is no number from 0 to 60", "wait")
    assert yard.call("GET", "/v1/hosts/h1/plan?wait=0.05").status_code == 200


def test_a_query_names_each_parameter_once(yard: Controller) -> None:
    for query in ("wait=1&wait=1", "wait=1&w%61it=2", "wait&wait"):
        reply = yard.call("GET", f"/v1/hosts/h1/plan?{query}")
        assert_problem(reply, 422, "wait: given twice; keep one", "wait")
    assert_problem(yard.call("GET", "/v1/plan?policy=fair&policy=fifo"), 422, "policy: given twice", "policy")
    assert_problem(yard.call("GET", "/v1/plan?policy=%ff"), 400, "the query is not UTF-8")


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"model": "a\x00b"}, "model"),
        ({"model": "\x1b[31mred"}, "model"),
        ({"model": "\u202egnp"}, "model"),
        ({"metric": {"name": "acc\x1b]0;x\x07"}}, "metric.name"),
        ({"weight": 5e-324}, "weight"),
        ({"iterations": 5e-324}, "iterations"),
        ({"iterations": 1e16}, "iterations"),
    ],
)
def test_words_and_numbers_that_would_do_harm_are_refused(yard: Controller, parts: dict[str, Any], field: str) -> None:
    assert_problem(yard.call("PUT", "/v1/jobs/bad", spec(5000, **parts)), 422, "", field)
    assert yard.call("PUT", "/v1/jobs/good", spec(5000, model="résumé 模型")).ok
    assert yard.call("DELETE", "/v1/jobs/good").status_code == 204


def test_too_many_flows_in_one_report(yard: Controller) -> None:
    flows = [{"job": "x", "flow": {"src": "h1", "dst": "h3", "src_port": p}} for p in range(1, 39_999)]
    assert_problem(yard.call("POST", "/v1/hosts/h1/reports", batch(flows=flows)), 422, "at most 4096", "flows")
    many = {"job": "x", "points": [{"iteration": k, "time": 1} for k in range(6000)]}
    assert_problem(yard.call("POST", "/v1/hosts/h1/reports", batch(many, many)), 422, "at most 10000 points", "(body)")


def test_a_host_token_may_claim_only_the_hosts_own_traffic_where_that_is_set(yard: Controller) -> None:
    own = {
        "tasks": [{"role": "ps", "host": "h1", "port": 5500}, {"role": "worker", "host": "h2"}],
        "demand": [{"src": "h2", "dst": "h1", "bytes": 1}],
        "flows": [{"src": "h1", "dst": "h3", "dst_port": 7}],
    }
    assert yard.call("PUT", "/v1/jobs/own", own, token=HOST).status_code == 201
    worker = {"role": "worker", "host": "h1"}
    for field, parts in (
        ("tasks.1", {"tasks": [worker, {"role": "ps", "host": "h2", "port": 22}]}),
        ("tasks.1", {"tasks": [worker, {"role": "peer", "host": "h2", "protocol": "rocev2"}]}),
        ("flows.0", {"flows": [{"src": "h2", "dst": "h3", "dst_port": 443}]}),
        ("flows.0", {"flows": [{"src": "h2", "dst": "h3", "protocol": "any"}]}),
        ("demand.0", {"demand": [{"src": "h2", "dst": "h3", "bytes": 1}]}),
    ):
        thief = {"tasks": [worker]} | parts
        assert_problem(
            yard.call("PUT", "/v1/jobs/thief", thief, token=HOST), 403, "h1 is no end of this traffic", field
        )
        assert yard.call("PUT", "/v1/jobs/thief", thief).status_code == 201, "an operator may"
        assert yard.call("DELETE", "/v1/jobs/thief").status_code == 204
    assert yard.call("DELETE", "/v1/jobs/own").status_code == 204


def test_a_late_end_does_not_touch_the_next_run(yard: Controller) -> None:
    yard.call("PUT", "/v1/jobs/late", spec(5600))
    first_end = time.time()
    yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "late", "ended": True, "as_of": first_end}))
    assert yard.call("PUT", "/v1/jobs/late", spec(5600)).status_code == 201
    told = batch({"job": "late", "ended": True, "as_of": first_end - 1})
    answer = yard.call("POST", "/v1/hosts/h2/reports", told).json()
    assert "the end is from before this run of the job" in answer["refused"][0]["reason"]
    assert yard.call("GET", "/v1/jobs/late").json()["state"] != "ended"
    yard.call("DELETE", "/v1/jobs/late")


def test_the_document_claims_no_licence(yard: Controller) -> None:
    assert "license" not in yard.call("GET", "/openapi.json").json()["info"]


def test_a_damaged_journal_is_one_line_and_status_1(tmp_path: Path) -> None:
    yard = Controller(tmp_path, journal=str(tmp_path / "j.db"))
    connection = sqlite3.connect(tmp_path / "j.db")
    connection.close()
    yard.start()
    yard.call("PUT", "/v1/jobs/a", spec(5000))
    yard.stop()
    with sqlite3.connect(tmp_path / "j.db") as connection:
        connection.execute("UPDATE record SET body='{}' WHERE kind='job'")
    connection.close()
    with pytest.raises(AssertionError, match=r"status 1: (.|\n)*its record of job 'a' is damaged: spec"):
        yard.start()
    assert "Traceback" not in yard.log()


# Without a process of its own ---------------------------------------------------------------------------------------


class Unready:
    """A dataplane with one switch that is not ready, for a reason that is nobody's business."""

    def switches(self) -> tuple[()]:
        return ()

    def status(self) -> tuple[SwitchStatus, ...]:
        reason = "tcp:10.9.8.7:6640: connection refused"
        return (SwitchStatus(7, connected=True, ready=False, reason=reason, rules=0, bundles=None),)


def test_readiness_tells_no_causes_to_everybody() -> None:
    services: Any = SimpleNamespace(config=Config.default(), dataplane=Unready())
    no_call: Any = None
    with pytest.raises(HttpError, match=r"^switch 0000000000000007 is not ready$") as caught:
        readyz(services, no_call)
    assert caught.value.status == 503


def answer(
    services: Any, method: str, path: str, routes: tuple[Route, ...] | None = None
) -> tuple[str, dict[str, Any]]:
    services.config, services.metrics = Config.default(), Metrics()
    services.callers = callers_of(services.config.api, [])
    api = Api(services) if routes is None else Api(services, routes)
    said: list[str] = []
    environ = {"PATH_INFO": path.partition("?")[0], "QUERY_STRING": path.partition("?")[2], "REQUEST_METHOD": method}
    parts = api(environ, lambda status, _headers: said.append(status))
    return said[0], json.loads(b"".join(parts))


def test_a_failure_of_the_controller_itself_is_a_problem_too(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_services: Any, _call: Any) -> Reply:
        """Fail."""
        raise ZeroDivisionError("a secret of the inside")

    routes = (Route("GET", "/broken", broken, Access.OPERATE, {200: None}),)
    status, problem = answer(SimpleNamespace(), "GET", "/broken", routes)
    assert status == "500 Internal Server Error"
    assert problem["detail"] == "the controller failed on this request; its log says how"
    assert any(record.exc_info for record in caplog.records)


def view(**loop: Any) -> tuple[str, dict[str, Any]]:
    settings, planning = SimpleNamespace(policy=Fifo()), SimpleNamespace(degraded=None, mode="classified")
    return answer(
        SimpleNamespace(
            loop=SimpleNamespace(settings=settings, epoch=3, now=lambda: 5.0, planning=planning, snapshot=None, **loop),
            config=SimpleNamespace(enforcement=Enforcement()),
        ),
        "GET",
        "/v1/plan",
    )


def test_before_the_first_plan() -> None:
    status, problem = view(plan=None, refusals=("switch 1: table full",))
    assert status == "503 Service Unavailable"
    assert problem["detail"] == "no plan is in force yet; ask again in a second; switch 1: table full"


def test_a_plan_that_was_refused_is_said_beside_the_one_in_force() -> None:
    made = plan(Snapshot(1.0, {}, (Job("a"),)), None, policy=Fifo())
    status, shown = view(plan=made, refusals=())
    assert (status, shown["applied"], shown["errors"]) == ("200 OK", True, [])
    _, shown = view(plan=made, refusals=("switch 1: table full",))
    assert (shown["applied"], shown["errors"], shown["classes"]) == (False, ["switch 1: table full"], {"a": 0})


def test_a_body_that_does_not_come_is_408() -> None:
    class Slow(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            eventlet.sleep(5)
            return b""

    environ = {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": "5", "wsgi.input": Slow()}
    with pytest.raises(HttpError, match=r"did not come within 0\.05 s") as caught:
        body.read_raw(environ, seconds=0.05)
    assert caught.value.status == 408


def test_a_plan_of_the_most_extreme_jobs_is_finite() -> None:
    hosts = {name: Host(name, ingress_bps=rate, egress_bps=rate) for name, rate in (("h1", 1e3), ("h2", 1e13))}
    extremes = [
        {"weight": weight, "iterations": iterations, "demand": [{"src": "h1", "dst": "h2", "bytes": size}]}
        for weight in (1e-9, 1e9)
        for iterations in (1e-9, 1e15)
        for size in (0.0, 5e-324, 1e18)
    ]
    jobs = []
    for k, extreme in enumerate(extremes):
        its = JobSpec.model_validate(extreme)
        assert its.iterations is not None
        demand = tuple(Demand(d.src, d.dst, d.bytes) for d in its.demand)
        jobs.append(
            Job(
                f"j{k}",
                demand,
                weight=its.weight,
                iterations_left=its.iterations,
                flows=(Flow(f"j{k}", "h1", "h2", 1),),
            )
        )
    made = plan(Snapshot(0.0, hosts, tuple(jobs)), None, policy=Fifo())
    assert math.isfinite(made.objective_seconds)
    assert math.isfinite(made.lower_bound_seconds)
    assert made.lower_bound_seconds <= made.objective_seconds * (1 + 1e-9)


def test_trainyard_controller_starts_without_noise(tmp_path: Path) -> None:
    config = tmp_path / "conf.yaml"
    config.write_text("api: {port: 0}\nopenflow: {port: 0}\n")
    command = [sys.executable, "-m", "controller.cli.main", "controller", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if "the API listens" in line:
                break
        process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert "greened" not in "".join(said)
    assert "Traceback" not in "".join(said)

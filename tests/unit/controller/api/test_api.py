from __future__ import annotations

import itertools
import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import HOST, OPERATOR, Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("api")
    controller = Controller(folder, journal=str(folder / "journal.db")).start()
    yield controller
    controller.stop()


def test_the_life_of_a_job(yard: Controller) -> None:
    created = yard.call("PUT", "/v1/jobs/life", spec(5000))
    assert created.status_code == 201
    assert created.json()["state"] == "waiting"
    assert yard.call("PUT", "/v1/jobs/life", spec(5000)).status_code == 200
    point = {"iteration": 5, "time": time.time(), "metric": 0.4}
    answer = yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "life", "points": [point], "sent_bytes": 9}))
    assert answer.json()["status"] == "taken"
    assert answer.json()["lease_seconds"] == 30
    state = yard.call("GET", "/v1/jobs/life").json()
    assert (state["state"], state["iterations_done"], state["last_metric"]) == ("running", 5, 0.4)
    assert "life" in [job["id"] for job in yard.call("GET", "/v1/jobs").json()["jobs"]]
    wait_until(lambda: "life" in yard.call("GET", "/v1/plan").json()["classes"])
    assert yard.call("GET", "/v1/jobs/life").json()["service_class"] is not None
    why = yard.call("GET", "/v1/jobs/life/explain").json()
    assert why["bottleneck_port"] == "h1 ingress"
    assert why["bottleneck_seconds_per_iteration"] == pytest.approx(0.008)
    assert "arrived" in why["reason"]
    wait_until(lambda: yard.call("GET", "/v1/jobs/life/explain").json()["iterations_done"] == 5, what="the next plan")
    waits = {port["port"]: port for port in yard.call("GET", "/v1/jobs/life/explain").json()["ports"]}
    assert set(waits) == {"h1 ingress", "h2 egress"}
    assert waits["h2 egress"]["own_seconds_per_iteration"] == pytest.approx(0.008)
    assert waits["h2 egress"]["own_seconds_left"] == pytest.approx(45 * 0.008), "5 of 50 iterations are done"
    assert yard.call("GET", "/v1/jobs/life").json()["ended_at"] is None
    yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "life", "ended": True}))
    state = yard.call("GET", "/v1/jobs/life").json()
    assert state["state"] == "ended"
    assert state["arrival"] < state["ended_at"] <= time.time()
    assert_problem(yard.call("GET", "/v1/jobs/life/explain"), 409, "job life is ended")
    assert yard.call("DELETE", "/v1/jobs/life").status_code == 204
    assert_problem(yard.call("DELETE", "/v1/jobs/life"), 404, "there is no job life")


def test_stages(yard: Controller) -> None:
    yard.call("PUT", "/v1/jobs/rung-a", spec(5100))
    assert yard.call("PUT", "/v1/stages/rung", {"jobs": ["rung-a"]}).json() == {"id": "rung", "jobs": ["rung-a"]}
    assert_problem(yard.call("PUT", "/v1/stages/rung", {"jobs": ["ghost"]}), 422, "unknown job", "jobs.0")
    taken = yard.call("PUT", "/v1/stages/other", {"jobs": ["rung-a"]})
    assert_problem(taken, 409, "job rung-a is in stage rung already; end that stage first", "jobs.0")
    assert_problem(yard.call("DELETE", "/v1/stages/other"), 404, "there is no stage other")
    assert yard.call("DELETE", "/v1/stages/rung").status_code == 204
    assert_problem(yard.call("DELETE", "/v1/stages/rung"), 404, "there is no stage rung")
    yard.call("DELETE", "/v1/jobs/rung-a")


def test_a_host_plan_with_entity_tag_and_long_poll(yard: Controller) -> None:
    wait_until(lambda: not yard.call("GET", "/v1/hosts/h1/plan").json()["marks"])
    first = yard.call("GET", "/v1/hosts/h1/plan")
    tag = first.headers["ETag"]
    assert first.json()["class_dscp"] == [59, 51, 43, 35, 27, 19, 11]
    new = {"acknowledgement_dscp", "other_dscp", "exclusive_dscp", "paused"}
    assert not new & first.json().keys(), "agents of an earlier version refuse what they do not know"
    unchanged = yard.call("GET", "/v1/hosts/h1/plan", headers={"If-None-Match": tag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    answers: list[Any] = []
    wait = 60
    waiter = threading.Thread(
        target=lambda: answers.append(
            yard.call("GET", f"/v1/hosts/h1/plan?wait={wait}", headers={"If-None-Match": tag}, token=HOST)
        )
    )
    waiter.start()
    time.sleep(0.1)
    yard.call("PUT", "/v1/jobs/polled", spec(5200))
    wait_until(lambda: not waiter.is_alive(), wait / 2, what="the change ends the wait")
    assert "polled" in [mark["job"] for mark in answers[0].json()["marks"]]
    yard.call("DELETE", "/v1/jobs/polled")
    assert_problem(yard.call("GET", "/v1/hosts/h1/plan?wait=61", headers={"If-None-Match": "x"}), 422, "wait", "wait")
    assert_problem(yard.call("GET", "/v1/hosts/h9/plan"), 404, "there is no host h9")


def test_settings_change_and_come_back(yard: Controller) -> None:
    assert yard.call("GET", "/v1/settings").json()["policy"] == "fifo"
    assert yard.call("PATCH", "/v1/settings", {"policy": "fair"}).json()["policy"] == "fair"
    assert yard.call("GET", "/v1/plan?policy=fifo").json()["applied"] is False
    assert yard.call("GET", "/v1/plan").json()["policy"] in ("fair", "fifo")
    assert_problem(yard.call("PATCH", "/v1/settings", {"policy": "best"}), 422, "unknown policy 'best'", "policy")
    assert_problem(yard.call("PATCH", "/v1/settings", {"period_seconds": 60}), 422, "gate", "period_seconds")
    assert_problem(yard.call("GET", "/v1/plan?policy=best"), 422, "there are: beamer, crux, fair, fifo", "policy")
    assert yard.call("PATCH", "/v1/settings", {"policy": "fifo"}).json()["policy"] == "fifo"


def test_state_and_metrics(yard: Controller) -> None:
    status = yard.call("GET", "/v1/status").json()
    assert status["journal"] == "written"
    assert status["problems"] == []
    assert [host["name"] for host in status["hosts"]] == ["h1", "h2", "h3"]
    assert 0 < status["plan_causes"]["period"] <= status["plans"]
    text = yard.call("GET", "/metrics").text
    assert re.search(r"^trainyard_plans_total [1-9]", text, re.MULTILINE)
    assert re.search(r'^trainyard_plan_causes_total\{cause="period"\} [1-9]', text, re.MULTILINE)
    assert "trainyard_journal_degraded 0.0" in text
    assert yard.call("GET", "/healthz", token="wrong").json()["status"] == "alive"
    assert_problem(yard.call("GET", "/readyz", token="wrong"), 503, "no switch has connected")


def test_the_status_says_how_far_a_hosts_clock_is_off(yard: Controller) -> None:
    def offset() -> float | None:
        hosts = yard.call("GET", "/v1/status").json()["hosts"]
        return next(host["clock_offset_seconds"] for host in hosts if host["name"] == "h3")

    assert offset() is None
    yard.call("POST", "/v1/hosts/h3/reports", batch() | {"sent_at": time.time() - 5.0})
    assert offset() == pytest.approx(5.0, abs=1.0)


def refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            yield from refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs(value)


def test_openapi_describes_every_call(yard: Controller) -> None:
    document = yard.call("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1.")
    for ref in refs(document):
        node = document
        for part in ref.removeprefix("#/").split("/"):
            node = node[part]
    names = set()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            names.add(operation["operationId"])
            declared = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path))
            assert operation["responses"]
    assert len(names) == sum(len(operations) for operations in document["paths"].values()) == 32
    assert document["components"]["schemas"]["JobSpec"]["additionalProperties"] is False


def test_openapi_describes_itself_and_the_long_poll(yard: Controller) -> None:
    paths = yard.call("GET", "/openapi.json").json()["paths"]
    itself = paths["/openapi.json"]["get"]["responses"]["200"]["content"]
    assert itself == {"application/json": {"schema": {"type": "object"}}}
    assert paths["/metrics"]["get"]["responses"]["200"]["content"] == {"text/plain": {"schema": {"type": "string"}}}
    poll = paths["/v1/hosts/{host}/plan"]["get"]
    asked = {parameter["name"]: parameter for parameter in poll["parameters"]}
    assert asked["wait"]["schema"] == {"type": "number", "minimum": 0, "maximum": 60, "default": 0}
    told = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            takes = [p["name"] for p in operation["parameters"] if p["in"] == "header"]
            tells = [status for status, answer in operation["responses"].items() if "ETag" in answer.get("headers", {})]
            if takes or tells:
                told[f"{method} {path}"] = (takes, tells)
    polled = (["If-None-Match", "Prefer"], ["200", "304"])
    resumed = (["Last-Event-ID"], [])
    assert told == {
        "get /v1/hosts/{host}/plan": polled,
        "get /v1/hosts/{host}/peers": polled,
        "get /v1/events": resumed,
    }
    for path in ("plan", "peers"):
        reply = yard.call("GET", f"/v1/hosts/h1/{path}")
        again = yard.call("GET", f"/v1/hosts/h1/{path}", headers={"If-None-Match": reply.headers["ETag"]})
        assert (again.status_code, again.headers["ETag"]) == (304, reply.headers["ETag"])


BAD_BODIES = [
    ("PUT", "/v1/jobs/bad", '{"tasks": [}', 400, "line 1 column 12", None),
    ("PUT", "/v1/jobs/bad", "", 400, "not valid JSON", None),
    ("PUT", "/v1/jobs/bad", "[" * 100_000, 400, "not valid JSON", None),
    ("PUT", "/v1/jobs/bad", b"\xff\xfe{}", 400, "not valid JSON", None),
    ("PUT", "/v1/jobs/bad", "[]", 422, "", "(body)"),
    ("PUT", "/v1/jobs/bad", '{"wieght": 1}', 422, "unknown key; did you mean weight?", "wieght"),
    ("PUT", "/v1/jobs/bad", r'{"model": "a\u202eb"}', 422, "it should hold no control characters", "model"),
    ("PUT", "/v1/jobs/bad", '{"weight": NaN}', 422, "", "weight"),
    ("PUT", "/v1/jobs/bad", '{"weight": 1e999}', 422, "", "weight"),
    ("PUT", "/v1/jobs/bad", '{"weight": -1}', 422, "is the number -1; it should be greater", "weight"),
    ("PUT", "/v1/jobs/bad", '{"weight": "1"}', 422, "", "weight"),
    ("PUT", "/v1/jobs/bad", '{"weight": 1' + "0" * 5000 + "}", 400, "out of range", None),
    ("PUT", "/v1/jobs/bad", '{"tasks": [{"role": "boss", "host": "h1"}]}', 422, "", "tasks.0.role"),
    ("PUT", "/v1/jobs/bad", '{"tasks": [{"role": "ps", "host": "h9"}]}', 422, "unknown host 'h9'", "tasks.0.host"),
    ("PUT", "/v1/jobs/bad", '{"tasks": [{"role": "ps", "host": "h1", "port": 70000}]}', 422, "", "tasks.0.port"),
    ("PUT", "/v1/jobs/bad", '{"demand": [{"src": "h1", "dst": "h1", "bytes": 1}]}', 422, "must differ", "demand.0"),
    ("POST", "/v1/hosts/h1/reports", '{"session": "s", "seq": 0, "sent_at": 1}', 422, "", "seq"),
    ("POST", "/v1/hosts/h1/reports", '{"session": "s", "seq": 1, "sent_at": -1}', 422, "", "sent_at"),
    ("PATCH", "/v1/settings", '{"period_seconds": 0}', 422, "", "period_seconds"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "said", "field"), BAD_BODIES)
def test_bad_bodies(
    yard: Controller, method: str, path: str, body: str | bytes, status: int, said: str, field: str | None
) -> None:
    reply = yard.call(method, path, data=body, headers={"Content-Type": "application/json"})
    assert_problem(reply, status, said, field)
    assert yard.call("GET", "/v1/jobs/bad").status_code == 404


def test_two_jobs_on_one_port(yard: Controller) -> None:
    yard.call("PUT", "/v1/jobs/one", spec(5300))
    refused = yard.call("PUT", "/v1/jobs/two", spec(5300))
    assert_problem(refused, 409, "jobs two and one both claim port 5300 on h1", "tasks.0.port")
    assert yard.call("DELETE", "/v1/jobs/one").status_code == 204


def test_reports_for_unknown_jobs_are_refused_in_part(yard: Controller) -> None:
    report = batch({"job": "ghost"})
    answer = yard.call("POST", "/v1/hosts/h1/reports", report)
    reason = "unknown job on h1; register it first, with a task, flow or demand there"
    assert answer.json()["refused"] == [{"job": "ghost", "reason": reason}]
    again = yard.call("POST", "/v1/hosts/h1/reports", batch(seq=report["seq"]))
    assert again.json()["status"] == "duplicate"
    assert_problem(yard.call("POST", "/v1/hosts/h9/reports", batch()), 404, "there is no host h9")


def test_unknown_paths_methods_and_parameters(yard: Controller) -> None:
    for path in ("/nothing", "/v1/jobs/", "/v1/jobs/a/b/c", "/a%0Ab", "/%ff", "//"):
        assert_problem(yard.call("GET", path), 404, "there is nothing at")
    wrong = yard.call("POST", "/v1/jobs/a", {})
    assert_problem(wrong, 405, "POST does not apply here")
    assert wrong.headers["Allow"] == "DELETE, GET, PUT"
    assert_problem(yard.call("GET", "/v1/jobs?color=red"), 422, "unknown query parameter", "color")
    assert_problem(yard.call("GET", "/" + "a" * 3000), 414, "longer than")
    head = yard.call("HEAD", "/v1/jobs")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("PUT", "/v1/jobs/my%20job", "id"),
        ("PUT", "/v1/jobs/" + "a" * 64, "id"),
        ("GET", "/v1/jobs/-bad", "id"),
        ("GET", "/v1/jobs/a%0A/explain", "id"),
        ("DELETE", "/v1/stages/a:b", "id"),
        ("POST", "/v1/hosts/_h1/reports", "host"),
        ("GET", "/v1/hosts/h%C3%A91/plan", "host"),
    ],
)
def test_a_name_that_nothing_can_have_is_at_fault(yard: Controller, method: str, path: str, field: str) -> None:
    reply = yard.call(method, path, None if method in ("GET", "DELETE") else {})
    assert_problem(reply, 422, "is no name, which has 1 to 63 letters, digits, dots, dashes and underscores", field)
    assert_problem(yard.call(method, path, token="wrong"), 401, "token")
    assert_problem(yard.call("PATCH", path, {}), 405, "PATCH does not apply here")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/jobs/%C3%BCb%F0%9F%9A%82", "'üb🚂' is no name"),
        ("/v1/jobs/%E2%80%AEevil", r"'\u202eevil' is no name"),
        ("/caf%C3%A9", "there is nothing at '/café'"),
    ],
)
def test_a_refusal_shows_a_path_as_it_was_written(yard: Controller, path: str, said: str) -> None:
    reply = yard.call("GET", path)
    assert said in reply.json()["detail"]


def test_a_name_that_nobody_has_is_not_found(yard: Controller) -> None:
    assert_problem(yard.call("GET", "/v1/jobs/" + "a" * 63), 404, "there is no job aaa")


@pytest.mark.parametrize(
    ("path", "instance"),
    [
        ("/v1/jobs/nobody?x=1", "/v1/jobs/nobody"),
        ("/v1/jobs/my%20job", "/v1/jobs/my%20job"),
        ("/caf%C3%A9", "/caf%C3%A9"),
        ("/100%25", "/100%25"),
        ("/a%0Ab", "/a%0Ab"),
        ("/%ff", "/%FF"),
        ("/" + "%20" * 300, "/" + "%20" * 199),
    ],
)
def test_a_problem_names_the_path_as_a_uri_reference(yard: Controller, path: str, instance: str) -> None:
    assert yard.call("GET", path).json()["instance"] == instance


def test_tokens(yard: Controller) -> None:
    for token in ("", "wrong", OPERATOR + "x", OPERATOR[:-1]):
        reply = yard.call("GET", "/v1/jobs", token=token)
        assert_problem(reply, 401, "token")
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")
    for header in ("Basic abc", OPERATOR, "Bearer"):
        assert_problem(yard.call("GET", "/nothing", headers={"Authorization": header}), 401, "token")
    assert yard.call("GET", "/healthz", token="wrong").status_code == 200


def test_a_host_token_reaches_only_what_is_the_hosts_own(yard: Controller) -> None:
    for method, path in (
        ("GET", "/v1/jobs"),
        ("GET", "/v1/plan"),
        ("GET", "/v1/status"),
        ("GET", "/metrics"),
        ("PATCH", "/v1/settings"),
        ("PUT", "/v1/stages/s"),
    ):
        assert_problem(yard.call(method, path, {} if method != "GET" else None, token=HOST), 403, "token of host h1")
    assert_problem(
        yard.call("GET", "/v1/hosts/h2/plan", token=HOST), 404, "there is no host h2 for the token of host h1"
    )
    assert_problem(yard.call("POST", "/v1/hosts/h2/reports", batch(), token=HOST), 404, "there is no host h2")
    assert yard.call("POST", "/v1/hosts/h1/reports", batch(), token=HOST).status_code == 200
    foreign = {"tasks": [{"role": "ps", "host": "h3", "port": 1}]}
    assert_problem(yard.call("PUT", "/v1/jobs/theirs", foreign, token=HOST), 403, "does not involve it")
    yard.call("PUT", "/v1/jobs/theirs", foreign)
    assert_problem(yard.call("PUT", "/v1/jobs/theirs", spec(5400), token=HOST), 403, "cannot have the name theirs")
    assert_problem(yard.call("DELETE", "/v1/jobs/theirs", token=HOST), 404, "there is no job theirs")
    assert yard.call("PUT", "/v1/jobs/mine", spec(5401), token=HOST).status_code == 201
    assert yard.call("DELETE", "/v1/jobs/mine", token=HOST).status_code == 204
    yard.call("DELETE", "/v1/jobs/theirs")


def test_a_slow_sender_does_not_hold_up_others(yard: Controller) -> None:
    slow = [socket.create_connection(("127.0.0.1", yard.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"PUT /v1/jobs/slow HTTP/1.1\r\nHost: x\r\nX-")
        assert yard.call("GET", "/healthz").ok
        slow[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            slow[0].recv(100)
        slow[0].settimeout(15)
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408 "), "the head's deadline must end the connection"
        wait_until(lambda: 'route="refused",status="408"} 50.0' in yard.call("GET", "/metrics").text)
    finally:
        for connection in slow:
            connection.close()


def test_the_api_survived_all_of_this(yard: Controller) -> None:
    assert yard.call("GET", "/v1/status").json()["plan_errors"] == 0
    assert yard.process is not None and yard.process.poll() is None
    assert "Traceback" not in yard.log()


def test_a_killed_controller_comes_back_with_the_same_state(tmp_path: Path) -> None:
    yard = Controller(tmp_path, journal=str(tmp_path / "j.db"), token=False).start()
    try:
        for i in range(3):
            assert yard.call("PUT", f"/v1/jobs/k{i}", spec(5000 + i)).status_code == 201
        yard.call("PATCH", "/v1/settings", {"policy": "las"})
        wait_until(lambda: yard.call("GET", "/v1/plan").json()["policy"] == "las")
        time.sleep(0.2)
        plan = yard.call("GET", "/v1/plan").json()
        tags = [yard.call("GET", f"/v1/hosts/h{i}/plan").headers["ETag"] for i in (1, 2, 3)]
        yard.stop(kill=True)
        yard.start()
        again = yard.call("GET", "/v1/plan").json()
        assert {k: again[k] for k in ("policy", "order", "classes", "epoch")} == {
            k: plan[k] for k in ("policy", "order", "classes", "epoch")
        }
        assert [yard.call("GET", f"/v1/hosts/h{i}/plan").headers["ETag"] for i in (1, 2, 3)] == tags
        foreign = yard.call("GET", "/v1/jobs", headers={"Host": "evil.example"})
        assert_problem(foreign, 403, "not this machine's own name")
        assert json.loads(yard.call("GET", "/v1/jobs", headers={"Host": f"localhost:{yard.port}"}).text)["jobs"]
    finally:
        yard.stop()


def test_tls(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=yard"
    files = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request.split(), *files], check=True, capture_output=True)
    api = {"tls_certificate": str(certificate), "tls_key": str(key)}
    yard = Controller(tmp_path, scheme="https", api=api)
    try:
        yard.start(verify=str(certificate))
        silent = socket.create_connection(("127.0.0.1", yard.port))  # a handshake that never comes
        assert yard.call("PUT", "/v1/jobs/a", spec(5000), verify=str(certificate)).status_code == 201
        assert b"problem" not in yard.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert yard.call("GET", "/v1/jobs/a", verify=str(certificate)).ok
        last = {"Last-Event-ID": "0"}
        with yard.call("GET", "/v1/events", verify=str(certificate), stream=True, headers=last) as stream:
            assert "event: audit" in itertools.islice(stream.iter_lines(1, decode_unicode=True), 10)
        silent.close()
    finally:
        yard.stop()


def test_explain_names_a_link_between_switches_where_that_is_the_bottleneck(tmp_path: Path) -> None:
    hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}", "switch": i, "port": 1} for i in (1, 2)]
    links = [{"a": 1, "a_port": 9, "b": 2, "b_port": 9, "rate_bps": 1e8}]
    controller = Controller(tmp_path, forwarding="paths", hosts=hosts, links=links).start()
    try:
        assert controller.call("PUT", "/v1/jobs/far", spec(5000)).status_code == 201
        wait_until(lambda: "far" in controller.call("GET", "/v1/plan").json().get("classes", {}))
        why = controller.call("GET", "/v1/jobs/far/explain").json()
        assert why["bottleneck_port"] == "switch 0x2 port 9 egress"
        assert why["bottleneck_seconds_per_iteration"] == pytest.approx(0.08)
    finally:
        controller.stop()

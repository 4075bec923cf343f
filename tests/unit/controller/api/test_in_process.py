"""The API in this process: where settings or parts must be as no switch, and no start of a controller, makes them."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import replace
from typing import Any

import eventlet
import eventlet.tpool
import pytest

from controller.access.caller import ANYBODY
from controller.api.audited import Auditor, Observed
from controller.api.http import Call, Reply
from controller.api.http11 import connection, gate
from controller.api.routes import ROUTES
from controller.cli.main import main
from controller.dataplane.values import PortProof, SwitchStatus
from controller.declared.declared import Declared
from controller.model import Host
from controller.registry import admission, stages
from controller.steps import in_steps
from controller.wire import JobSpec
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.api.served import served

PROOF = PortProof(1, "s1-eth1", {0: 3})
LEFT = PortProof(2, "s1-eth2", {}, "port s1-eth2 has queues that are not Trainyard's")
PROBLEM = f"1 of its 2 ports is not ordered: {LEFT.problem}"


@pytest.mark.parametrize(
    ("probe", "ports", "problems", "word", "status"),
    [
        (True, (PROOF,), [], "ready", 0),
        (True, (PROOF, LEFT), [f"switch {1:016x} is ready, with a problem: {PROBLEM}"], "partly ready", 1),
        (False, (), ["queues are not proven: probe is false"], "not proven", 1),
    ],
)
def test_queues_that_nobody_has_tried_are_not_shown_as_proven(
    capsys: pytest.CaptureFixture[str],
    probe: bool,
    ports: tuple[PortProof, ...],
    problems: list[str],
    word: str,
    status: int,
) -> None:
    with served(probe=probe) as api:
        switch = SwitchStatus(1, connected=True, ready=True, reason=None, rules=3, bundles=True, ports=ports)
        if LEFT in ports:
            switch = replace(switch, problems=(PROBLEM,))
        api.yard.network.status = lambda: (switch,)  # type: ignore[method-assign]
        readiness = api.call("GET", "/readyz")
        assert readiness.status_code == 200, "it works, proven or not"
        assert readiness.json()["status"] == ("degraded" if problems else "ready")
        assert readiness.json()["problems"] == [problem.partition(":")[0] for problem in problems]
        assert api.call("GET", "/v1/status").json()["problems"] == problems
        assert eventlet.tpool.execute(main, ["probe", "--url", api.url, "--json"]) == status
        capsys.readouterr()
        assert eventlet.tpool.execute(main, ["probe", "--url", api.url]) == status
    table = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert table[1][:3] == ["0000000000000001", "all", word]


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_hosts_whose_marks_no_switch_believes_are_a_problem(mode: str) -> None:
    with served(mode=mode, dscp="class-selectors", hosts=[]) as api:
        registry = api.yard.registry
        hosts = {"h1": Host("h1", address="10.0.0.1", switch=1, switch_port=1)}
        registry.change_hosts(hosts, 30.0)
        assert api.call("GET", "/v1/status").json()["problems"] == []
        registry.change_hosts(hosts | {"h2": Host("h2", address="10.0.0.2")}, 30.0)
        problems = api.call("GET", "/v1/status").json()["problems"]
        # Switches that go by addresses need no marks.
        assert len(problems) == (mode == "marked")
        assert all("at the ports of hosts alone" in text and text.endswith(": h2") for text in problems)


def test_readiness_is_the_switches_and_not_a_plans() -> None:
    with served(is_planning=False) as api:
        assert api.call("GET", "/v1/plan").status_code == 503
        assert api.call("GET", "/readyz").json() == {"status": "ready", "problems": []}
        described = api.call("GET", "/openapi.json").json()["paths"]["/readyz"]["get"]["summary"]
    assert described.startswith("At least one switch is ready for rules")


def test_there_are_only_so_many_jobs_and_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_JOBS", 2)
    monkeypatch.setattr(stages, "MAX_STAGES", 2)
    with served() as api:

        def put(path: str, body: dict[str, Any], status: int) -> None:
            assert api.call("PUT", path, body).status_code == status

        put("/v1/jobs/a", spec(5000), 201)
        put("/v1/jobs/b", spec(5001), 201)
        refused = api.call("PUT", "/v1/jobs/c", spec(5002))
        assert_problem(refused, 409, "there are 2 jobs already, which is the most; let some end, or remove some")
        put("/v1/jobs/a", spec(5000, weight=2.0), 200)
        put("/v1/stages/s", {"jobs": ["a"]}, 201)
        put("/v1/stages/t", {"jobs": []}, 201)
        refused = api.call("PUT", "/v1/stages/u", {"jobs": []})
        assert_problem(refused, 409, "there are 2 stages already, which is the most; end some")
        put("/v1/stages/s", {"jobs": ["a", "b"]}, 200)
        for path in ("/v1/jobs/b", "/v1/stages/t"):
            assert api.call("DELETE", path).status_code == 204
        put("/v1/jobs/c", spec(5002), 201)
        put("/v1/stages/u", {"jobs": []}, 201)


def test_before_there_is_a_plan_who_asks_for_it_is_told_to_ask_again() -> None:
    with served(is_planning=False) as api:
        api.yard.loop.host_plans.first_plan_seconds = 0.05
        api.yard.put("a", 5000)
        for path in ("/v1/plan", "/v1/jobs/a/explain", "/v1/hosts/h1/plan"):
            reply = api.call("GET", path)
            assert_problem(reply, 503, "ask again in a second")
            assert reply.headers["Retry-After"] == "1"


def test_a_job_that_no_plan_has_yet_cannot_be_explained_yet() -> None:
    with served() as api:
        api.yard.loop.stop()
        api.yard.put("late", 5000)
        reply = api.call("GET", "/v1/jobs/late/explain")
        assert_problem(reply, 503, "job late is not in the plan yet; ask again in a second")
        assert reply.headers["Retry-After"] == "1"


def test_the_list_of_all_jobs_comes_in_parts_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(gate, "Pause", lambda: lambda: pauses.append(1))
    with served(is_planning=False) as there:
        assert there.call("GET", "/v1/jobs").json() == {"jobs": []}
        for n in range(300):
            there.yard.registry.put_job(f"j{n}", JobSpec.model_validate(spec(port=6000 + n)), 0.0)
        pauses.clear()
        whole = there.call("GET", "/v1/jobs")
        assert [job["id"] for job in whole.json()["jobs"]] == [f"j{n}" for n in range(300)]
        assert len(pauses) > 300, "others may go on between the parts"
        head = there.call("HEAD", "/v1/jobs")
        assert head.headers["Content-Length"] == whole.headers["Content-Length"] == str(len(whole.content))
        assert not head.content


def test_others_may_go_on_between_requests_that_have_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(connection, "Pause", lambda: lambda: pauses.append(1))
    with served(is_planning=False) as there:
        port = int(there.url.rpartition(":")[2])

        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", port), 15) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
                client.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: client.recv(65536), b""))

        assert eventlet.tpool.execute(ask).count(b"HTTP/1.1 200") == 50
        assert len(pauses) >= 50


@pytest.mark.usefixtures("frozen_heap")
def test_a_record_costs_a_request_less_than_a_millisecond() -> None:
    """In processor time, so that what else runs here does not count. A change has the most in its record."""
    with served() as api:
        services = api.services
        light, heavy = (Declared.of(JobSpec.model_validate(spec(5000, weight=weight))) for weight in (1.0, 2.0))
        in_steps(services.registry.put_job_in_steps("job", light, 0.0))
        route = next(route for route in ROUTES if route.name == "PUT /v1/jobs/{id}")
        auditor, count = Auditor(services), 500
        before = time.thread_time()
        for _ in range(count):
            observed = Observed({"REMOTE_ADDR": "10.0.0.1"}, "/v1/jobs/job")
            observed.caller = ANYBODY
            auditor.look(observed, route, Call({}, {"id": "job"}, {}, ANYBODY, 0.0))
            auditor.read(observed, heavy)
            auditor.note(observed, route.name, Reply(200))
        seconds = (time.thread_time() - before) / count
        assert services.audit.head.number == count
    assert seconds < 1e-3

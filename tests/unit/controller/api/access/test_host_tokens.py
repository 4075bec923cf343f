"""What a host's own token may not do: put a job before others, or take the room of others."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.declared.claimed_traffic import ClaimedTraffic, size_of
from controller.declared.declared import Declared
from controller.journal.bodies import JobBody
from controller.model import Progress
from controller.refusals import Conflict
from controller.registry import shares
from controller.registry.job.job_bodies import job_of, job_text
from controller.registry.job.record import JobRecord
from controller.wire import JobSpec
from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Address
from host_reporter.uplink.sender import Sender
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.registry.registry_world import World, job_spec, progress
from tests.support.loopback import has_been_read


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("host-tokens"), api={"host_stages": "none"}).start()
    yield controller
    controller.stop()


@pytest.mark.parametrize(
    ("parts", "field", "said"),
    [
        ({"stage": "first"}, "stage", "stages are for operators; leave it out, and have one PUT /v1/stages/{id}"),
        ({"weight": 1.5}, "weight", "a host's token gives at most 1; an operator's may give more"),
        ({"arrival": 1.0}, "arrival", "leave it out, and the job arrives now"),
    ],
)
def test_what_puts_a_job_before_others_is_for_operators(
    yard: Controller, parts: dict[str, Any], field: str, said: str
) -> None:
    wanted = spec(5000, **parts)
    assert_problem(yard.call("PUT", "/v1/jobs/pushy", wanted, token=HOST), 403, said, field)
    assert yard.call("GET", "/v1/jobs/pushy").status_code == 404
    assert yard.call("PUT", "/v1/jobs/pushy", wanted).status_code == 201, "an operator may"
    assert yard.call("PUT", "/v1/jobs/pushy", wanted, token=HOST).status_code == 200, "what it has already it keeps"
    assert yard.call("PUT", "/v1/jobs/pushy", wanted | {"iterations": 60}, token=HOST).status_code == 200
    assert yard.call("DELETE", "/v1/jobs/pushy").status_code == 204
    assert_problem(yard.call("PUT", "/v1/jobs/pushy", wanted, token=HOST), 403, said, field)


def test_each_field_at_fault_is_named(yard: Controller) -> None:
    wanted = spec(5000, stage="first", weight=2.0, arrival=0.0)
    fields = [error["field"] for error in yard.call("PUT", "/v1/jobs/pushy", wanted, token=HOST).json()["errors"]]
    assert fields == ["stage", "weight", "arrival"]


def test_an_ordinary_job_of_a_host_is_taken(yard: Controller) -> None:
    # As an agent sends it whose file has waited for half a minute.
    ordinary = spec(5000, weight=0.5, arrival=time.time() - 30, model="resnet50")
    assert yard.call("PUT", "/v1/jobs/ordinary", ordinary, token=HOST).status_code == 201
    assert yard.call("DELETE", "/v1/jobs/ordinary", token=HOST).status_code == 204


def test_a_job_that_comes_while_a_body_is_on_its_way_is_not_taken_over(yard: Controller) -> None:
    body = json.dumps(spec(5003)).encode()
    head = f"PUT /v1/jobs/theirs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {HOST}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    theirs = {"tasks": [{"role": "ps", "host": "h2", "port": 5004}, {"role": "worker", "host": "h3"}]}
    with socket.create_connection(("127.0.0.1", yard.port), 10) as slow:
        slow.sendall(head.encode() + body[:1])
        wait_until(lambda: has_been_read(slow))
        assert yard.call("PUT", "/v1/jobs/theirs", theirs).status_code == 201
        slow.sendall(body[1:])
        assert b" 403 " in slow.recv(65536).partition(b"\r\n")[0]
    assert yard.call("GET", "/v1/jobs/theirs").json()["spec"]["tasks"][0]["host"] == "h2"
    assert yard.call("DELETE", "/v1/jobs/theirs").status_code == 204


FOREIGN = {
    "tasks": [{"role": "ps", "host": "h2", "port": 5004}, {"role": "worker", "host": "h3"}],
    "stage": "rung",
}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/jobs/NAME", None),
        ("GET", "/v1/jobs/NAME/explain", None),
        ("DELETE", "/v1/jobs/NAME", None),
        ("PUT", "/v1/jobs/NAME", {"tasks": [{"role": "ps", "host": "h3"}]}),
        ("PUT", "/v1/jobs/NAME", {"tasks": [{"role": "ps", "host": "h9"}]}),
        ("PUT", "/v1/stages/s", {"jobs": ["NAME"]}),
        ("PUT", "/v1/stages/STAGE", {"jobs": []}),
        ("DELETE", "/v1/stages/STAGE", None),
        ("GET", "/v1/hosts/HOST/plan", None),
        ("GET", "/v1/hosts/HOST/peers", None),
        ("POST", "/v1/hosts/HOST/reports", {"session": "s", "seq": 1, "sent_at": 1}),
        ("POST", "/v1/hosts/HOST/reports", {"is": "wrong"}),
        ("POST", "/v1/hosts/h1/reports", {"jobs": [{"job": "NAME", "points": [{"iteration": 1, "time": 1}]}]}),
        ("POST", "/v1/hosts/h1/reports", {"jobs": [{"job": "NAME", "ended": True}]}),
        ("POST", "/v1/hosts/h1/reports", {"traffic": [{"job": "NAME", "as_of": 1}]}),
        (
            "POST",
            "/v1/hosts/h1/reports",
            {"flows": [{"job": "NAME", "flow": {"src": "h1", "dst": "h2", "dst_port": 9}}]},
        ),
    ],
)
def test_a_host_token_cannot_tell_what_is_others_from_what_is_not_there(
    yard: Controller, method: str, path: str, body: dict[str, Any] | None
) -> None:
    assert yard.call("PUT", "/v1/jobs/foreign", FOREIGN).status_code == 201

    def ask(name: str, host: str, stage: str) -> tuple[int, str, dict[str, str]]:
        def named(text: str) -> str:
            return text.replace("NAME", name).replace("HOST", host).replace("STAGE", stage)

        sent = None if body is None else json.loads(named(json.dumps(body)))
        if sent is not None and path == "/v1/hosts/h1/reports":
            sent |= {"session": name, "seq": 2, "sent_at": 1}
        reply = yard.call(method, named(path), sent, token=HOST)
        text = reply.text.replace(name, "NAME").replace(host, "HOST").replace(stage, "STAGE")
        kept = {key: value for key, value in reply.headers.items() if key not in ("Date", "Content-Length")}
        return reply.status_code, text, kept

    try:
        assert ask("foreign", "h3", "rung") == ask("nobodys", "h7", "none")
        job = yard.call("GET", "/v1/jobs/foreign").json()
        assert (job["state"], job["spec"]["stage"]) == ("waiting", "rung")
    finally:
        yard.call("DELETE", "/v1/jobs/foreign")


def test_the_name_of_a_foreign_job_is_taken_and_no_more_is_said(yard: Controller) -> None:
    assert yard.call("PUT", "/v1/jobs/foreign", FOREIGN).status_code == 201
    refused = yard.call("PUT", "/v1/jobs/foreign", spec(5005), token=HOST)
    assert_problem(refused, 403, "the token of host h1 cannot have the name foreign; choose another")
    thief = {"tasks": [{"role": "worker", "host": "h1"}, {"role": "ps", "host": "h2", "port": 5004}]}
    clash = yard.call("PUT", "/v1/jobs/thief", thief, token=HOST)
    assert_problem(clash, 409, "job thief and another one both claim port 5004 on h2", "tasks.1.port")
    assert "foreign" not in clash.text
    assert_problem(yard.call("PUT", "/v1/jobs/thief", thief), 409, "jobs thief and foreign both claim")
    assert yard.call("DELETE", "/v1/jobs/foreign").status_code == 204


def test_a_host_is_told_no_target_of_a_job_that_is_not_its_own() -> None:
    world = World()
    world.put("a")
    world.registry.set_watch({"a": 0.5}, 0.0)
    assert list(world.tell("h1", jobs=[progress("a", (1, 0.1))]).urgent) == ["a"]
    assert world.tell("h4", jobs=[progress("a", (1, 0.1))]).urgent == {}


def test_an_agent_says_what_its_job_file_may_not_hold_and_its_other_jobs_go_on(
    yard: Controller, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text(HOST)
    faults: list[Exception] = []
    agent = Sender(Address(yard.url, token), "h1", 0.2, Notices(logging.getLogger("agent")), faults.append)
    agent.start()
    try:
        agent.declare("pushy", job_spec(5001, stage="first"))
        agent.declare("plain", job_spec(5002))
        agent.add("plain", [Progress(3.0, time.time(), 0.5)])
        wait_until(lambda: yard.call("GET", "/v1/jobs/plain").json().get("iterations_done") == 3)
        wait_until(lambda: "job pushy is refused for now: stage: stages are for operators; leave it out" in caplog.text)
        agent.declare("pushy", job_spec(5001))  # its file is right now
        wait_until(lambda: yard.call("GET", "/v1/jobs/pushy").ok)
    finally:
        agent.stop()
    assert faults == []
    for job in ("pushy", "plain"):
        yard.call("DELETE", f"/v1/jobs/{job}")


def test_one_hosts_token_cannot_fill_the_memory(yard: Controller) -> None:
    most = {"demand": [{"src": "h1", "dst": "h2", "bytes": 1}] * 40_000}
    assert yard.call("PUT", "/v1/jobs/large-1", most, token=HOST).status_code == 201
    refused = yard.call("PUT", "/v1/jobs/large-2", most, token=HOST)
    assert_problem(refused, 409, "the jobs of the token of host h1 would name 80000 tasks, demands and flows; 65536")
    assert yard.call("PUT", "/v1/jobs/large-2", most).status_code == 201, "an operator has all the room"
    assert yard.call("DELETE", "/v1/jobs/large-1", token=HOST).status_code == 204
    assert yard.call("PUT", "/v1/jobs/large-3", most, token=HOST).status_code == 201
    for job in ("large-2", "large-3"):
        yard.call("DELETE", f"/v1/jobs/{job}")


# The registry alone --------------------------------------------------------------------------------------------------


def put(world: World, job: str, port: int, registrar: str | None = "h1", **parts: Any) -> Any:
    return world.registry.put_job(job, job_spec(port, **parts), 0.0, registrar=registrar)


def test_one_hosts_token_leaves_room_for_the_jobs_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "HOST_JOBS", 3)
    world = World()
    for k in range(3):
        put(world, f"j{k}", 5000 + k)
    with pytest.raises(Conflict, match=r"the token of host h1 has 3 jobs already.*let some end, remove some, or"):
        put(world, "one-more", 6000)
    put(world, "j0", 5000, iterations=7.0)  # one of its own may change
    put(world, "of-h2", 6001, "h2")
    put(world, "of-an-operator", 6002, None)
    world.registry.delete_job("j0", 0.0)
    put(world, "one-more", 6000)
    world.tell(jobs=[progress("one-more", ended=True)])
    put(world, "next", 6003)  # what has ended counts no more


def test_whose_job_it_is_survives_a_restart() -> None:
    job = JobRecord("a", Declared.of(job_spec()), run=1, arrival=0.0, registered_at=0.0, registrar="h1")
    body = JobBody.model_validate_json(job_text(job))
    assert job_of("a", body).registrar == "h1"
    old = JobBody.model_validate_json(body.model_dump_json(exclude={"registrar"}))
    assert job_of("a", old).registrar is None, "a journal from before says nothing of it"


def test_jobs_that_have_ended_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    size = size_of(job_spec())
    monkeypatch.setattr(shares, "HOST_ENTRIES", 3 * size)
    world = World()
    for k in range(5):
        world.clock.now += 1
        put(world, f"j{k}", 5000 + k)
        world.tell(jobs=[progress(f"j{k}", ended=True)])
    put(world, "of-an-operator", 6000, None)
    assert [state.id for state in world.registry.job_states({})] == ["j2", "j3", "j4", "of-an-operator"]
    put(world, "j5", 5005)
    put(world, "j6", 5006)
    put(world, "j7", 5007)
    assert {state.id for state in world.registry.job_states({})} == {"of-an-operator", "j5", "j6", "j7"}
    with pytest.raises(Conflict, match="would name"):
        put(world, "j8", 5008)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"demand": [{"src": "h1", "dst": "h2", "bytes": 1}, {"src": "h3", "dst": "h1", "bytes": 1}]},
        {"demand": [{"src": "h2", "dst": "h3", "bytes": 1}]},
        {"flows": [{"src": "h1", "dst": "h4", "dst_port": 7}]},
    ],
)
def test_a_jobs_size_covers_all_that_is_kept_of_it(parts: dict[str, Any]) -> None:
    its: JobSpec = job_spec(**parts)
    assert size_of(its) == len(its.tasks) + len(its.demand) + len(ClaimedTraffic.of(its).flows)

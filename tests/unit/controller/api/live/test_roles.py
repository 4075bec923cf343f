"""What each role sees of events, the history and the network, with tokens that a reload withdraws."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.event_reader import EventReader
from tests.support.controller.api.roles_yard import LINES, RolesYard


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    controller = RolesYard(tmp_path_factory.mktemp("live-roles"))
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def yard(running: RolesYard) -> Iterator[RolesYard]:
    yield running
    for job in running.call("GET", "/v1/jobs").json()["jobs"]:
        running.call("DELETE", f"/v1/jobs/{job['id']}")


@pytest.fixture
def readers(yard: RolesYard) -> Iterator[dict[str, EventReader]]:
    opened = {name: EventReader(yard.port, token=yard.tokens[name]) for name in ("night", "board", "vision", "speech")}
    yield opened
    for reader in opened.values():
        reader.close()


def put(yard: RolesYard, name: str, job: str, port: int, **parts: object) -> None:
    assert yard.by(name, "PUT", f"/v1/jobs/{job}", spec(port, **parts)).status_code == 201


def test_a_tenant_follows_its_own_jobs_and_finds_no_other_name(
    yard: RolesYard, readers: dict[str, EventReader]
) -> None:
    put(yard, "speech", "secret-name", 5000, user="cem", stage="secret-stage")
    put(yard, "vision", "vision-1", 5001, user="ann", stage="own")
    put(yard, "night", "shared", 5002, user="ann", stage="secret-stage")
    whole = readers["night"].wait("plan", lambda data: len(data["classes"]) == 3)
    own = readers["vision"].wait("plan", lambda data: len(data["classes"]) == 2)
    assert own["id"] == whole["id"]
    assert own["data"]["order"] == [["vision-1"], ["shared"]]
    assert own["data"]["classes"] == {job: whole["data"]["classes"][job] for job in ("vision-1", "shared")}
    hidden = ("moves", "objective_seconds", "lower_bound_seconds", "epoch")
    assert {own["data"][name] for name in hidden} == {None}
    assert None not in [whole["data"][name] for name in hidden]
    readers["vision"].wait("job", lambda data: data["id"] == "shared")
    readers["vision"].wait("stage", lambda data: data["id"] == "secret-stage" and data["jobs"] == ["shared"])
    readers["speech"].wait("job", lambda data: data["id"] == "secret-name")
    yard.call("DELETE", "/v1/jobs/shared")
    readers["vision"].wait("stage", lambda data: data == {"id": "secret-stage", "state": "ended", "jobs": ["shared"]})
    assert readers["night"].wait("stage", lambda data: data["jobs"] == ["secret-name"])["data"]["state"] == "running"
    assert {document["data"]["id"] for document in readers["vision"].of("job")} == {"vision-1", "shared"}
    assert {document["data"]["id"] for document in readers["speech"].of("job")} == {"secret-name"}
    assert "secret-name" not in json.dumps(readers["vision"].documents)
    seen = {document["event"] for document in (*readers["vision"].documents, *readers["speech"].documents)}
    assert seen <= {"plan", "job", "stage"}


def test_operators_alone_see_the_audit(yard: RolesYard, readers: dict[str, EventReader]) -> None:
    put(yard, "vision", "vision-1", 5001, user="ann")
    record = readers["night"].wait("audit", lambda data: data["action"] == "PUT /v1/jobs/{id}")
    assert (record["data"]["who"], record["data"]["role"]) == ("vision", "tenant")
    readers["board"].wait("job", lambda data: data["id"] == "vision-1")
    assert not readers["board"].of("audit")


def test_an_event_of_a_job_is_of_the_user_that_it_had(yard: RolesYard) -> None:
    """A name that another tenant takes later shows nothing of the job before."""
    put(yard, "night", "name", 5003, user="cem", stage="cems-stage")
    reader = EventReader(yard.port, token=yard.tokens["speech"])
    put(yard, "night", "other", 5004, user="cem")
    reader.wait("job", lambda data: data["id"] == "other")
    yard.call("DELETE", "/v1/jobs/name")
    reader.wait("job", lambda data: data["id"] == "name" and data["state"] == "removed")
    reader.wait("stage", lambda data: data == {"id": "cems-stage", "state": "ended", "jobs": ["name"]})
    time.sleep(1.1)  # else one event would tell of both
    put(yard, "night", "name", 5003, user="ann")
    reader.close()
    for name, states in (("speech", {"waiting", "removed"}), ("vision", {"waiting"})):
        again = EventReader(yard.port, token=yard.tokens[name], last=0)
        wait_until(lambda again=again: [d for d in again.of("job") if d["data"]["id"] == "name"])
        assert {d["data"]["state"] for d in again.of("job") if d["data"]["id"] == "name"} == states
        again.wait("plan", lambda data: "name" in data["classes"])
        taken = again.of("job")[-1]["time"] - 1
        plans = [d["time"] < taken for d in again.of("plan") if "name" in d["data"]["classes"]]
        assert set(plans) == {name == "speech"}, "of the run of its own job alone"
        assert bool([d for d in again.of("stage") if "name" in d["data"]["jobs"]]) == (name == "speech")
        again.close()


def test_who_loses_a_name_to_others_at_once_is_told(yard: RolesYard, readers: dict[str, EventReader]) -> None:
    put(yard, "night", "taken", 5003, user="cem")
    readers["speech"].wait("job", lambda data: data["id"] == "taken")
    yard.call("DELETE", "/v1/jobs/taken")
    put(yard, "night", "taken", 5003, user="ann")
    readers["speech"].wait("job", lambda data: data["id"] == "taken" and data["state"] == "removed")
    readers["vision"].wait("job", lambda data: data["id"] == "taken" and data["state"] == "waiting")
    wait_until(lambda: [each["data"]["state"] for each in readers["night"].of("job")][-2:] == ["removed", "waiting"])
    time.sleep(1.2)
    own = [document["data"] for document in readers["vision"].of("job") if document["data"]["id"] == "taken"]
    assert {data["state"] for data in own} == {"waiting"}


def test_a_stream_ends_when_tokens_change_and_a_withdrawn_one_gets_no_other(yard: RolesYard) -> None:
    kept, gone = (EventReader(yard.port, token=yard.tokens[name]) for name in ("board", "speech"))
    try:
        yard.keep(*(name for name in LINES if name != "speech"))
        wait_until(lambda: kept.has_ended and gone.has_ended, what="the end of the streams")
        assert_problem(yard.by("speech", "GET", "/v1/events"), 401, "the token is not known here")
        again = EventReader(yard.port, token=yard.tokens["board"])
        assert again.head.startswith(b"HTTP/1.1 200")
        again.close()
    finally:
        yard.keep(*LINES)
        kept.close()
        gone.close()


def test_no_token_is_taken_from_the_address(yard: RolesYard) -> None:
    for query in (f"?token={yard.tokens['board']}", f"?access_token={yard.tokens['board']}"):
        assert_problem(
            yard.call("GET", f"/v1/events{query}", headers={"Authorization": None}), 401, "a bearer token is required"
        )
        refused = yard.call("GET", f"/v1/events{query}")
        assert_problem(refused, 422, "unknown query parameter; there are: none")
        assert yard.tokens["board"] not in refused.text


def test_a_host_has_no_stream(yard: RolesYard) -> None:
    assert_problem(yard.by("h1", "GET", "/v1/events"), 403, "GET /v1/events is for: operator or viewer or tenant")


def test_the_history_has_a_tenants_own_jobs_and_no_ports(yard: RolesYard) -> None:
    put(yard, "speech", "secret-name", 5000, user="cem")
    put(yard, "vision", "vision-1", 5001, user="ann")
    point = {"iteration": 5, "time": time.time(), "metric": 0.25}
    yard.by("h1", "POST", "/v1/hosts/h1/reports", batch({"job": "vision-1", "points": [point]}))

    def history(name: str, query: str = "") -> Any:
        return yard.by(name, "GET", f"/v1/history{query}").json()

    wait_until(lambda: {"vision-1", "secret-name"} <= set(history("board")["jobs"]), 15.0)
    assert "vision-1" in history("vision")["jobs"] and "secret-name" not in history("vision")["jobs"]
    since = int(time.time()) - 20
    wait_until(
        lambda: 0.25 in history("vision", f"?since={since}")["jobs"]["vision-1"]["metric"],
        15.0,
    )
    theirs = yard.by("vision", "GET", "/v1/history?jobs=secret-name")
    missing = yard.by("vision", "GET", "/v1/history?jobs=nobody")
    assert_problem(theirs, 404, "the history has no job secret-name")
    assert theirs.text.replace("secret-name", "nobody") == missing.text
    put(yard, "speech", "secret-and-new", 5002, user="cem")
    assert_problem(yard.by("vision", "GET", "/v1/history?jobs=secret-and-new"), 404, "has no job secret-and-new")
    assert_problem(yard.by("vision", "GET", "/v1/history?ports=x:1"), 404, "the history has no port x:1")


def test_the_network_is_for_those_who_may_see_all(yard: RolesYard) -> None:
    assert [host["name"] for host in yard.by("board", "GET", "/v1/network").json()["hosts"]] == ["h1", "h2", "h3"]
    assert_problem(yard.by("vision", "GET", "/v1/network"), 403, "GET /v1/network is for: operator or viewer")

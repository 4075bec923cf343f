"""Events, history and network of a real controller while its settings change, while it is paused, and of odd texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.wire import EventDocument
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.event_reader import EventReader
from tests.support.controller.api.roles_yard import LINES, RolesYard

TEXT = '": é😀, id: 7 data: {"x":1}'
"""May be the name of a user, a family or a metric."""
ODD = '":\n\r\n data: {"x":1}\r\u2028\u0000é😀,'


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[RolesYard]:
    controller = RolesYard(tmp_path, audit={"file": str(tmp_path / "audit.jsonl")}, lease_seconds=3.0, gate_seconds=120)
    controller.start()
    yield controller
    controller.stop()


def follow(yard: RolesYard, last: str = "") -> EventReader:
    return EventReader(yard.port, token=yard.tokens["night"], last=int(last) if last else None)


def reload(yard: RolesYard, **settings: Any) -> None:
    yard.settings |= settings
    yard.write()
    answer = yard.by("night", "POST", "/v1/reload")
    assert answer.ok, answer.text


def report(yard: RolesYard, host: str, *jobs: dict[str, Any]) -> None:
    answer = yard.call("POST", f"/v1/hosts/{host}/reports", batch(*jobs))
    assert answer.ok, answer.text


def samples(yard: RolesYard, field: str) -> list[float | None]:
    """Returns what the history has of the job "a"; nothing before the first sample."""
    found: list[float | None] = yard.call("GET", "/v1/history").json()["jobs"].get("a", {field: []})[field]
    return found


def test_the_feed_goes_on_after_hosts_policy_links_and_tokens_have_changed(yard: RolesYard) -> None:
    reader = follow(yard)
    assert yard.call("PUT", "/v1/jobs/a", spec(5000, user="cem")).ok
    report(yard, "h3")
    reader.wait("host", lambda data: data["name"] == "h3" and data["state"] == "alive")
    hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}", "switch": "0x1", "port": i} for i in (1, 2, 4)]
    yard.write_tokens(*(name for name in LINES if name != "speech"))
    reload(yard, hosts=hosts, policy="las", links=[{"a": "0x1", "a_port": 9, "b": "0x2", "b_port": 8}])
    wait_until(lambda: reader.has_ended, 5.0, what="the end of the stream")
    again = follow(yard, reader.last)
    try:
        again.wait("host", lambda data: data["name"] == "h3" and data["state"] == "removed")
        again.wait("host", lambda data: data["name"] == "h4" and data["state"] == "silent")
        report(yard, "h4")
        again.wait("host", lambda data: data["name"] == "h4" and data["state"] == "alive")
        loaded = again.wait("settings", lambda data: data["policy"] == "las")
        assert loaded["data"]["settings_sha256"] is not None
        again.wait("plan", lambda data: data["policy"] == "las")
        again.wait("audit", lambda data: data["action"] == "POST /v1/reload" and data["outcome"] == "done")
        ids = [document["id"] for document in (*reader.documents, *again.documents)]
        assert ids == list(range(ids[0], ids[0] + len(ids))), "nothing is missing, and nothing comes twice"
        assert [yard.by(name, "GET", "/v1/events").status_code for name in ("speech", "h1")] == [401, 403]
        network = yard.call("GET", "/v1/network").json()
        assert [host["name"] for host in network["hosts"]] == ["h1", "h2", "h4"]
        assert [switch["dpid"][-1] for switch in network["switches"]] == ["1", "2"]
        assert len(network["links"]) == 4
        point = {"iteration": 5, "time": time.time(), "metric": 0.25}
        report(yard, "h1", {"job": "a", "points": [point], "sent_bytes": 1000.0})
        again.wait("job", lambda data: data["state"] == "running")
        wait_until(lambda: 0.25 in samples(yard, "metric"), 15.0)
        for document in (*reader.documents, *again.documents):
            EventDocument.model_validate(document)
    finally:
        reader.close()
        again.close()


def test_a_reload_that_is_refused_is_told_and_ends_no_stream(yard: RolesYard) -> None:
    reader = follow(yard)
    yard.settings["policy"] = "none-such"
    yard.write()
    assert yard.by("night", "POST", "/v1/reload").status_code == 422
    head = "the changed settings are refused, and those of before are in force"
    reader.wait("problem", lambda data: data["state"] == "appeared" and data["problem"].startswith(head))
    reload(yard, policy="las")
    wait_until(lambda: reader.has_ended, 5.0)
    again = follow(yard, reader.last)
    again.wait("problem", lambda data: data["state"] == "gone" and data["problem"].startswith(head))
    reader.close()
    again.close()


@pytest.mark.parametrize("enforce", [["switch", "host"], []])
def test_who_enforces_nothing_tells_of_jobs_and_plans_all_the_same(tmp_path: Path, enforce: list[str]) -> None:
    yard = RolesYard(tmp_path, enforce=enforce)
    yard.start()
    reader = follow(yard)
    try:
        assert yard.call("PATCH", "/v1/settings", {"pause": True}).ok
        reader.wait("settings", lambda data: data["pause"])
        assert yard.call("PUT", "/v1/jobs/a", spec(5000)).ok
        report(yard, "h1", {"job": "a", "points": [{"iteration": 5, "time": time.time(), "metric": 0.25}]})
        reader.wait("plan", lambda data: data["order"] == [["a"]])
        reader.wait("job", lambda data: data["state"] == "running" and data["service_class"] == 0)
        wait_until(lambda: 5.0 in samples(yard, "iterations_done"))
    finally:
        reader.close()
        yard.stop()


def test_what_people_write_ends_no_event_and_makes_none(yard: RolesYard) -> None:
    """Names are plain, but paths, families, metrics and options are not; each ends up in some event."""
    reader = follow(yard)
    path = "/v1/jobs/" + "".join(f"%{byte:02x}" for byte in ODD.encode())
    assert yard.call("PUT", path, spec(5000), headers={"Authorization": None}).status_code == 401
    assert yard.call("PATCH", "/v1/settings", {"policy": ODD}).status_code == 422
    for text in ('{"policy": "las", "policy_options": {"factor": 1e999}}', '{"policy_options": {"factor": NaN}}'):
        answer = yard.session.request("PATCH", yard.url + "/v1/settings", data=text, timeout=15)
        assert answer.status_code in (400, 415, 422), answer.text
    metric = {"name": TEXT, "direction": "max"}
    assert yard.call("PUT", "/v1/jobs/a", spec(5000, user=TEXT, family=TEXT, metric=metric)).ok
    reader.wait("job", lambda data: data["id"] == "a")
    report(yard, "h1", {"job": "a", "points": [{"iteration": 5, "time": time.time(), "metric": 1e30}]})
    reader.wait("job", lambda data: data["state"] == "running")
    audited = [document["data"] for document in reader.of("audit")]
    assert [record["after"]["user"] for record in audited if "after" in record] == [TEXT]
    assert "/v1/jobs/" + ODD in {record.get("path") for record in audited}
    ids = [document["id"] for document in reader.documents]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert "x" not in {key for document in reader.documents for key in document}
    for document in reader.documents:
        EventDocument.model_validate(document)
    reader.close()

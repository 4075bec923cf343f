"""Streams of events of a real controller: what comes, where they go on, and when they end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from controller.events.ring import MOST
from controller.wire import EventDocument, JobEvent, PlanEvent, SettingsEvent
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.event_reader import EventReader


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("stream"), token=False).start()
    yield controller
    controller.stop()


@pytest.fixture
def yard(running: Controller) -> Iterator[Controller]:
    yield running
    for job in running.call("GET", "/v1/jobs").json()["jobs"]:
        running.call("DELETE", f"/v1/jobs/{job['id']}")


@pytest.fixture
def reader(yard: Controller) -> Iterator[EventReader]:
    reader = EventReader(yard.port)
    yield reader
    reader.close()


def report(yard: Controller, job: str, iteration: float, metric: float = 0.5) -> None:
    points = [{"iteration": iteration, "time": time.time(), "metric": metric}]
    assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": job, "points": points})).ok


def test_the_head_is_that_of_a_stream(reader: EventReader) -> None:
    assert reader.head.startswith(b"HTTP/1.1 200 OK\r\n")
    lines = set(reader.head.split(b"\r\n"))
    assert {b"Content-Type: text/event-stream", b"Connection: close", b"Cache-Control: no-store"} <= lines
    assert not any(line.lower().startswith((b"content-length", b"transfer-encoding")) for line in lines)


def test_a_job_from_its_registration_to_its_removal(yard: Controller, reader: EventReader) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000, stage="rung"))
    plan = reader.wait("plan", lambda data: data["classes"] == {"a": 0})
    assert plan["data"]["order"] == [["a"]]
    assert plan["data"]["policy"] == "fifo"
    assert plan["data"]["objective_seconds"] >= plan["data"]["lower_bound_seconds"] * (1 - 1e-9) > 0
    assert abs(plan["time"] - time.time()) < 30
    reader.wait("stage", lambda data: data == {"id": "rung", "state": "running", "jobs": ["a"]})
    reader.wait("job", lambda data: data["state"] == "waiting" and data["service_class"] == 0)
    report(yard, "a", 7.0)
    told = reader.wait("job", lambda data: data["state"] == "running")["data"]
    assert (told["progress"]["iterations_done"], told["progress"]["iterations_total"]) == (7.0, 50.0)
    assert (told["progress"]["last_metric"], told["progress"]["ended_at"]) == (0.5, None)
    reader.wait("host", lambda data: data["name"] == "h1" and data["state"] == "alive")
    assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "ended": True})).ok
    ended = reader.wait("job", lambda data: data["state"] == "ended")
    assert 0 <= ended["time"] - ended["data"]["progress"]["ended_at"] < 30
    yard.call("DELETE", "/v1/jobs/a")
    reader.wait("job", lambda data: data["state"] == "removed")
    reader.wait("stage", lambda data: data == {"id": "rung", "state": "ended", "jobs": ["a"]})
    reader.wait("plan", lambda data: data["classes"] == {})
    assert [record["data"]["action"] for record in reader.of("audit")] == ["PUT /v1/jobs/{id}", "DELETE /v1/jobs/{id}"]
    for document in reader.documents:
        EventDocument.model_validate(document)


def test_what_a_job_is_is_told_with_each_change_of_its_state_alone(yard: Controller, reader: EventReader) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000, user="ann", stage="rung", weight=2.0, target=0.9, family="digits"))
    told = reader.wait("job")["data"]["description"]
    assert (told["user"], told["stage"], told["weight"], told["family"]) == ("ann", "rung", 2.0, "digits")
    assert (told["hosts"], told["servers"]) == (["h1", "h2"], ["h1"])
    assert told["demand"] == [{"src": "h2", "dst": "h1", "bytes": 1e6}]
    assert (told["metric"], told["target"]) == ({"name": "accuracy", "direction": "max"}, 0.9)
    for iteration in (1.0, 2.0, 3.0):
        report(yard, "a", iteration)
        reader.wait("job", lambda data, done=iteration: data["progress"]["iterations_done"] == done)
    states = [event["data"]["state"] for event in reader.of("job") if "description" in event["data"]]
    assert states == ["waiting", "running"]
    yard.call("PUT", "/v1/jobs/a", spec(5000, weight=3.0))
    reader.wait("job", lambda data: data.get("description", {}).get("weight") == 3.0)
    yard.call("DELETE", "/v1/jobs/a")
    reader.wait("job", lambda data: data["state"] == "removed")


def test_a_job_that_agents_have_found_is_told_with_its_launcher(yard: Controller, reader: EventReader) -> None:
    yard.call("PUT", "/v1/jobs/slurm-7/parts/h1", {"launcher": "slurm"})
    told = reader.wait("job", lambda data: data["id"] == "slurm-7")["data"]["description"]
    assert (told["launcher"], told["first_host"], told["hosts"]) == ("slurm", None, ["h1"])
    yard.call("PUT", "/v1/jobs/slurm-7/parts/h2", {"launcher": "slurm", "is_first": True})
    event = reader.wait("job", lambda data: data.get("description", {}).get("first_host") == "h2")
    assert event["data"]["description"]["hosts"] == ["h1", "h2"]
    JobEvent.model_validate(event["data"])
    yard.call("DELETE", "/v1/jobs/slurm-7")


def test_the_demand_of_very_many_hosts_is_no_part_of_events(yard: Controller, reader: EventReader) -> None:
    demand = [{"src": f"h{a}", "dst": f"h{b}", "bytes": 1.0} for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    yard.call("PUT", "/v1/jobs/few", spec(5000, demand=demand))
    assert len(reader.wait("job", lambda data: data["id"] == "few")["data"]["description"]["demand"]) == 6
    assert yard.call("PUT", "/v1/jobs/many", spec(5001, demand=demand * 43)).ok
    event = reader.wait("job", lambda data: data["id"] == "many")
    assert event["data"]["description"]["demand"] is None
    JobEvent.model_validate(event["data"])
    for job in ("few", "many"):
        yard.call("DELETE", f"/v1/jobs/{job}")
        reader.wait("job", lambda data, job=job: data["id"] == job and data["state"] == "removed")


def test_each_event_is_as_it_is_described(yard: Controller, reader: EventReader) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000))
    yard.call("PATCH", "/v1/settings", {"policy": "jpas"})
    for iteration in range(1, 12):
        report(yard, "a", iteration, iteration / (iteration + 3))
    predicted = reader.wait("job", lambda data: "t90" in data["targets"])
    assert 0 < predicted["data"]["targets"]["t90"]["iteration"] <= 50
    JobEvent.model_validate(predicted["data"])
    PlanEvent.model_validate(reader.wait("plan")["data"])
    changed = reader.wait("settings", lambda data: data["policy"] == "jpas")
    SettingsEvent.model_validate(changed["data"])
    yard.call("PATCH", "/v1/settings", {"pause": True})
    appeared = reader.wait("problem", lambda data: data["state"] == "appeared")
    assert appeared["data"]["problem"] == "an operator has paused, so nothing is enforced"
    yard.call("PATCH", "/v1/settings", {"pause": False, "policy": "fifo"})
    reader.wait("problem", lambda data: data == appeared["data"] | {"state": "gone"})


def test_a_job_that_reports_all_the_time_has_an_event_a_second_and_the_last_state(
    yard: Controller, reader: EventReader
) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000, iterations=10_000))
    reader.wait("job")
    began, iteration = time.monotonic(), 0
    while time.monotonic() - began < 3.0:
        iteration += 1
        report(yard, "a", iteration)
    reader.wait("job", lambda data: data["progress"]["iterations_done"] == iteration, 5.0)
    events = reader.of("job")
    assert iteration > 2 * len(events)
    assert len(events) <= 6
    assert all(later["time"] - earlier["time"] > 0.95 for earlier, later in pairwise(events))


def test_ids_rise_by_one_and_a_stream_goes_on_behind_the_last_one(yard: Controller, reader: EventReader) -> None:
    yard.call("PUT", "/v1/jobs/a", spec(5000))
    reader.wait("job")
    last = int(reader.last)
    reader.close()
    yard.call("PUT", "/v1/jobs/b", spec(5001))
    time.sleep(0.5)
    again = EventReader(yard.port, last=last)
    try:
        again.wait("job", lambda data: data["id"] == "b")
        ids = [document["id"] for document in (*reader.documents, *again.documents)]
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        assert again.documents[0]["id"] == last + 1
        assert not again.of("gap")
    finally:
        again.close()


def test_zero_asks_for_all_that_is_kept(yard: Controller) -> None:
    reader = EventReader(yard.port, last=0)
    try:
        assert reader.wait("audit", lambda data: data["action"] == "start")["data"]["number"] == 1
        settings = reader.wait("settings")["data"]
        assert (settings["policy"], settings["period_seconds"], settings["classes"]) == ("fifo", 0.5, 7)
        assert settings["enforce"] == ["switches", "hosts"]
        for host in ("h1", "h2", "h3"):
            data = reader.wait("host", lambda data, name=host: data["name"] == name)["data"]
            assert (data["state"], data["egress_bps"], data["ingress_bps"]) == ("silent", 1e9, 1e9)
        assert not reader.of("gap")
    finally:
        reader.close()


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "1" * 17])
def test_what_is_no_id_is_refused(yard: Controller, last: str) -> None:
    refused = yard.call("GET", "/v1/events", headers={"Last-Event-ID": last})
    assert_problem(refused, 400, "is no id of an event", "Last-Event-ID")


def test_a_silent_stream_shows_that_it_lives(yard: Controller) -> None:
    reader = EventReader(yard.port)
    try:
        wait_until(lambda: reader.beats >= 1)
        first = reader.last
        assert int(first) > 0
        wait_until(lambda: reader.beats >= 2, 20.0, what="a sign of life after 15 s")
    finally:
        reader.close()


def test_a_head_request_has_no_stream(yard: Controller) -> None:
    answer = yard.call("HEAD", "/v1/events")
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert not answer.content


def test_streams_end_at_the_stop_and_go_on_after_a_restart_without_wrong_events(tmp_path: Path) -> None:
    yard = Controller(tmp_path, token=False, journal=str(tmp_path / "journal")).start()
    readers: list[EventReader] = []
    try:
        readers = [EventReader(yard.port) for _ in range(20)]
        yard.call("PUT", "/v1/jobs/a", spec(5000))
        for reader in readers:
            reader.wait("job")
        report(yard, "a", 3.0)
        time.sleep(0.3)
        report(yard, "a", 4.0)  # it waits for its second when the stop comes
        began = time.monotonic()
        yard.stop()
        assert time.monotonic() - began < 5.0
        wait_until(lambda: all(reader.has_ended for reader in readers), 5.0, what="the end of all streams")
        assert all(reader.of("job")[-1]["data"]["progress"]["iterations_done"] == 4.0 for reader in readers)
        last = int(readers[0].last)
        yard.start()
        again = EventReader(yard.port, last=last)
        readers.append(again)
        again.wait("plan", lambda data: data["classes"] == {"a": 0})
        gap, first, *_ = again.documents
        assert gap["event"] == "gap"
        assert gap["data"] == {"first": last + 1, "last": first["id"] - 1}
        assert gap["id"] == gap["data"]["last"]
        assert first["id"] > last + MOST
        assert again.of("audit")[0]["data"]["action"] == "start", "all of this run"
        earlier = {document["id"] for document in readers[0].documents}
        assert not earlier & {document["id"] for document in again.documents}
    finally:
        for reader in readers:
            reader.close()
        yard.stop()


def test_a_host_that_becomes_silent_and_its_lost_job_are_told(tmp_path: Path) -> None:
    yard = Controller(tmp_path, token=False, lease_seconds=1.0).start()
    reader = EventReader(yard.port)
    try:
        yard.call("PUT", "/v1/jobs/a", spec(5000))
        report(yard, "a", 1.0)
        reader.wait("host", lambda data: data["name"] == "h1" and data["state"] == "alive")
        reader.wait("host", lambda data: data["name"] == "h1" and data["state"] == "silent")
        reader.wait("job", lambda data: data["state"] == "lost")

        def runs() -> bool:
            # As an agent does: one report alone could be over before the job's next event, a second after the last one.
            report(yard, "a", 2.0)
            newest = reader.of("job")[-1]["data"]
            return newest["state"] == "running" and newest["progress"]["iterations_done"] == 2.0

        wait_until(runs, what="a running job", every=0.2)
    finally:
        reader.close()
        yard.stop()


def test_the_number_of_streams_is_a_metric(yard: Controller, reader: EventReader) -> None:
    def metrics() -> str:
        return str(yard.call("GET", "/metrics").text)

    # Clients that have gone are noticed at the next events.
    yard.call("PUT", "/v1/jobs/a", spec(5000))
    yard.call("PUT", "/v1/jobs/b", spec(5001))
    wait_until(lambda: "trainyard_event_streams 1.0" in metrics(), what="one stream")
    assert re.search(r'trainyard_events_total\{event="plan"\} [1-9]', metrics())
    reader.close()
    yard.call("DELETE", "/v1/jobs/a")
    time.sleep(0.5)
    yard.call("DELETE", "/v1/jobs/b")
    wait_until(lambda: "trainyard_event_streams 0.0" in metrics(), what="the end of the stream")

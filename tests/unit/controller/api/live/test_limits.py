"""The bounds of streams, on real sockets in this process, with smaller bounds where the real ones take long."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import eventlet
import eventlet.tpool
import pytest

from controller.access.caller import Caller, Role, Tenancy
from controller.api.http import Call, HttpError
from controller.api.live import feed, stream, writer
from controller.events.ring import Ring
from controller.loop.metrics import counted
from controller.wire.event_stream import sent_events
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem
from tests.support.controller.api.event_reader import stalled
from tests.support.controller.api.served import Served, served

FIRST = 5000
ANN = Tenancy(("ann",))
LARGE = {"text": "x" * 20_000}


@pytest.fixture
def api() -> Iterator[Served]:
    with served(is_planning=False) as there:
        there.services.feed.ring = Ring(FIRST, most=50)
        yield there


def port(api: Served) -> int:
    return int(api.url.rpartition(":")[2])


def connected(api: Served, count: int) -> list[socket.socket]:
    """Returns clients that ask for events, whose streams have begun."""
    clients = [eventlet.tpool.execute(stalled, port(api)) for _ in range(count)]
    wait_until(lambda: streams(api) == count, sleep=eventlet.sleep, what="the streams")
    return clients


def streams(api: Served) -> int:
    return sum(api.services.feed.streams.values())


def add(api: Served, count: int) -> None:
    for _ in range(count):
        api.services.feed.ring.add("switch", 1.0, LARGE)
        api.services.feed.wake()
        eventlet.sleep(0.001)


def documents(client: socket.socket, last: int) -> list[dict[str, Any]]:
    """Returns the events that a client gets, up to the one with the id ``last``."""
    found = []
    with client.makefile("rb") as file:
        while file.readline() != b"\r\n":
            pass
        for sent in sent_events(file):
            if sent.data is not None:
                found.append(json.loads(sent.data))
            if sent.last == str(last):
                break
    return found


def test_a_client_that_is_too_slow_gets_a_gap_with_the_ids_that_it_missed(api: Served) -> None:
    (client,) = connected(api, 1)
    add(api, 400)
    newest = FIRST + 399
    got = eventlet.tpool.execute(documents, client, newest)
    gaps = [document["data"] for document in got if document["event"] == "gap"]
    assert len(gaps) >= 1
    missed = {number for gap in gaps for number in range(gap["first"], gap["last"] + 1)}
    events = [document["id"] for document in got if document["event"] != "gap"]
    assert missed.isdisjoint(events)
    assert sorted(missed | set(events)) == list(range(FIRST, newest + 1))
    assert [document["id"] for document in got] == sorted(document["id"] for document in got)
    assert len(missed) > 200
    assert counted(api.services.metrics.event_gaps) == len(gaps)
    client.close()


def test_a_client_that_takes_nothing_is_disconnected(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "WRITE_SECONDS", 0.5)
    clients = connected(api, 3)
    add(api, 100)
    wait_until(lambda: streams(api) == 0, sleep=eventlet.sleep, what="the end of the streams")
    for client in clients:
        with pytest.raises(ConnectionResetError):
            while eventlet.tpool.execute(client.recv, 65536):
                pass
        client.close()


def test_there_are_only_so_many_streams(api: Served) -> None:
    api.services.feed.most_streams = 2
    clients = connected(api, 2)
    refused = api.call("GET", "/v1/events")
    assert_problem(refused, 503, "there are 2 streams, which is the most; ask again later")
    assert refused.headers["Retry-After"] == "5"
    for client in clients:
        client.close()


def test_who_follows_gets_all_that_is_left_when_the_controller_stops(api: Served) -> None:
    clients = connected(api, 3)
    for number in range(20):
        api.services.feed.ring.add("switch", 1.0, LARGE | {"number": number})
    api.services.feed.close()
    for client in clients:
        assert [document["id"] for document in eventlet.tpool.execute(documents, client, FIRST + 19)] == [
            *range(FIRST, FIRST + 20)
        ]
        client.close()
    wait_until(lambda: streams(api) == 0, sleep=eventlet.sleep, what="the end of the streams")
    assert_problem(api.call("GET", "/v1/events"), 503, "the controller stops; ask again later")


def test_a_stream_ends_after_a_while_so_that_the_client_shows_again_who_it_is(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LONGEST_SECONDS", 0.2)
    answer = api.call("GET", "/v1/events")
    assert answer.text == f": alive\nid: {FIRST - 1}\n\n"


def test_streams_that_see_the_same_share_what_they_send(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = feed.shown
    monkeypatch.setattr(feed, "shown", lambda *arguments: made.append(1) or original(*arguments))
    clients = connected(api, 40)
    api.services.feed.ring.add("switch", 1.0, {})
    api.services.feed.wake()
    for client in clients:
        assert eventlet.tpool.execute(documents, client, FIRST)[0]["id"] == FIRST
        client.close()
    assert len(made) == 1


def test_what_is_put_together_is_forgotten_when_it_is_much(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CACHE_BYTES", 50_000)
    live = api.services.feed
    for number in range(20):
        live.ring.add("switch", 1.0, LARGE)
        batch = live.ring.after(FIRST + number - 1)
        assert live.together(batch, "viewer") == batch.events[0].sent
    kept = live._together
    assert sum(map(len, kept.values())) <= 50_000 and len(kept) == 2


def test_what_a_tenant_sees_nothing_of_is_forgotten_too(api: Served) -> None:
    live = api.services.feed
    for _ in range(3 * feed.CACHE_BATCHES):
        live.ring.add("switch", 1.0, {})
        assert live.together(live.ring.after(live.ring.newest - 1), Tenancy(("ann",))) == b""
    assert len(live._together) == feed.CACHE_BATCHES


def test_who_waits_for_long_leaves_nothing_behind(api: Served) -> None:
    live = api.services.feed
    clients = [eventlet.spawn(live.wait, live.ring.newest, 0.01 * (1 + number % 3)) for number in range(200)]
    for client in clients:
        client.wait()
    assert not live._waiting


def test_a_tenant_has_its_own_limit_whatever_others_of_its_name_do(api: Served) -> None:
    live = api.services.feed
    tenant, other = Caller("ann", Role.TENANT, tenancy=ANN), Caller("ann", Role.VIEWER, proof="oidc")
    for _ in range(stream.TENANT_STREAMS):
        live.enter(other)
    assert stream.follow_events(api.services, asks(tenant)).stream is not None
    for _ in range(stream.TENANT_STREAMS):
        live.enter(tenant)
    with pytest.raises(HttpError, match="ann has 64 streams, which is the most for a tenant"):
        stream.follow_events(api.services, asks(tenant))
    assert stream.follow_events(api.services, asks(other)).stream is not None


def asks(caller: Caller) -> Call:
    return Call({}, {}, {}, caller=caller, received_at=0.0)


def test_a_fault_in_a_stream_ends_it_and_nothing_else(
    api: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(api.services.feed, "together", fail)
    answer = api.call("GET", "/v1/events")
    assert answer.text == f": alive\nid: {FIRST - 1}\n\n", "no second head in the middle of the stream"
    assert streams(api) == 0
    assert "a stream has failed" in caplog.text
    assert api.call("GET", "/healthz").ok

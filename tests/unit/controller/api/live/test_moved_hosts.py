"""A host with another cable: the event of its new port, the problem where it is not followed, and the metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import eventlet
import pytest

from controller.api.calls.state import all_problems
from controller.api.live.sources import Sources
from controller.wire import HostDecision, HostRequest
from controller.wire.announcement import Announcement
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.samples import Samples
from tests.support.controller.api.served import Served, served

REQUEST = HostRequest(addresses=("10.0.0.7",), mac="02:00:00:00:00:07", token_sha256="7" * 64)


@pytest.fixture
def api() -> Iterator[Served]:
    with served(enrolment={"approve": "at-once"}) as there:
        sources = Sources(there.services, all_problems, clock=time.time)
        sources.start()
        there.services.hosts.ask("h7", REQUEST, "10.0.0.7")
        yield there
        sources.stop()


def announce(api: Served, port: int) -> None:
    hosts = api.services.hosts
    hosts.announced(1, port, Announcement("02:00:00:00:00:07", hosts.enrolments.find("h7").announcement))


def ports(api: Served) -> list[tuple[str | None, int | None]]:
    """Returns where h7 was, by its events."""
    ring = api.services.feed.ring
    found = ring.after(ring.first - 1, together=10**9).events
    data: list[dict[str, Any]] = [event.data for event in found if event.kind == "host" and event.data["name"] == "h7"]
    return [(each.get("switch"), each.get("port")) for each in data]


def misplaced(api: Served) -> list[str]:
    return [problem for problem in all_problems(api.services) if "another cable" in problem]


def test_an_event_tells_of_the_new_port(api: Served) -> None:
    for port in (7, 8):
        announce(api, port)
        wait_until(lambda port=port: ports(api)[-1:] == [("0000000000000001", port)], 20, sleep=eventlet.sleep)
    assert misplaced(api) == []


def test_a_host_that_is_not_followed_is_a_problem_and_is_counted(api: Served) -> None:
    api.services.hosts.decide("h7", HostDecision(state="approved", switch=1, port=7), "ann")
    announce(api, 9)
    assert misplaced(api) == ["hosts have another cable than is known (trainyard hosts): h7"]
    found = Samples(api.call("GET", "/metrics").text)
    assert found.value("trainyard_hosts_misplaced") == 1
    (shown,) = [host for host in api.call("GET", "/v1/hosts").json()["hosts"] if host["name"] == "h7"]
    assert (shown["port"], shown["problems"][0].partition(",")[0]) == (
        7,
        "it has announced itself at port 9 of switch 0000000000000001",
    )
    announce(api, 7)
    assert misplaced(api) == []


def test_how_long_hosts_have_waited_is_known(api: Served) -> None:
    name = "trainyard_enrolment_wait_seconds"
    assert Samples(api.call("GET", "/metrics").text).value(name) == 0
    asking = REQUEST.model_copy(
        update={"addresses": ("10.0.0.8",), "mac": "02:00:00:00:00:08", "token_sha256": "8" * 64}
    )
    api.services.hosts.ask("h8", asking, "10.0.0.99")
    eventlet.sleep(0.05)
    assert 0.04 <= Samples(api.call("GET", "/metrics").text).value(name) < 60

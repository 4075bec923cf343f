"""An agent asks to be added: what it does with each answer, and when it goes on."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from controller.wire import HostPut, HostView
from controller.wire.announcement import Announcement
from host_reporter.enrolment.enrol import (
    ANNOUNCE_SECONDS,
    IPV4_SECONDS,
    REFUSED_SECONDS,
    Enrolling,
    wait_for_approval,
    waiting_for_ipv4,
)
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Answer, UnreachableError

FACTS = InterfaceFacts("eth0", ("10.0.0.7",), "02:00:00:00:00:07", 25e9)
RAILS = (
    InterfaceFacts("eth0", ("10.0.0.7", "fd00::7"), "02:00:00:00:00:07", 25e9),
    InterfaceFacts("eth1", ("fd01::7",), "02:00:00:00:01:07", 50e9),
)
SECRET = "0123456789abcdef" * 2


def view(state: str, *, announcement: str | None = None, status: int = 200) -> Answer:
    told = {"name": "h7", "state": state, "egress_bps": 25e9, "ingress_bps": 25e9, "ask_again_seconds": 5.0}
    answer = HostView.model_validate(told | {"announcement": announcement})
    return Answer(status, None, answer.model_dump_json().encode())


def problem(status: int, detail: str, errors: Sequence[tuple[str, str]] = ()) -> Answer:
    told = [{"field": field, "message": said} for field, said in errors]
    return Answer(status, None, json.dumps({"detail": detail, "errors": told}).encode())


class World:
    """A controller with these answers, and a host that notes what it does."""

    def __init__(self, *answers: Answer | Exception, unsent: str | None = None, facts: Any = lambda: (FACTS,)) -> None:
        self._answers = list(answers)
        self._unsent = unsent
        self._facts = facts
        self.bodies: list[str] = []
        self.asked: list[tuple[str, str, HostPut]] = []
        self.sent: list[tuple[str, str, Announcement]] = []
        self.slept: list[float] = []
        self.secret: str | None = None

    def request(self, method: str, path: str, body: str | None = None) -> Answer:
        self.bodies.append(str(body))
        self.asked.append((method, path, HostPut.model_validate_json(str(body))))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _send(self, interface: str, host: str, announcement: Announcement) -> str | None:
        self.sent.append((interface, host, announcement))
        return self._unsent

    def run(self, rate_bps: float | None = None) -> World:
        rates = {} if rate_bps is None else {"eth0": rate_bps}
        enrolling = Enrolling("h7", rates, self._facts, self._send, self.slept.append)
        self.secret = wait_for_approval(self, "0" * 64, enrolling, Notices(logging.getLogger("test")))
        assert self._answers == []
        return self


def test_it_says_what_the_interface_says_and_waits_until_it_is_approved(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world = World(view("pending", status=201), view("pending"), view("approved")).run()
    method, path, put = world.asked[0]
    assert (method, path) == ("PUT", "/v1/hosts/h7")
    assert put.request is not None
    assert (put.request.addresses, put.request.mac, put.request.egress_bps) == (FACTS.addresses, FACTS.mac, 25e9)
    assert world.slept == [5.0, 5.0]
    assert [record.message for record in caplog.records] == [
        "host h7 waits to be approved: an operator runs trainyard hosts approve h7",
        "host h7 is approved",
    ]


def test_the_rate_of_the_options_goes_before_that_of_the_interface() -> None:
    put = World(view("approved")).run(rate_bps=10e9).asked[0][2]
    assert put.request is not None
    assert put.request.ingress_bps == 10e9


def test_all_interfaces_are_told_with_the_addresses_of_both_families() -> None:
    put = World(view("approved"), facts=lambda: RAILS).run(rate_bps=10e9).asked[0][2]
    assert put.request is not None and put.request.addresses == ("10.0.0.7",)
    assert [(each.interface, each.addresses, each.mac, each.egress_bps) for each in put.request.links] == [
        ("eth0", ("10.0.0.7", "fd00::7"), "02:00:00:00:00:07", 10e9),
        ("eth1", ("fd01::7",), "02:00:00:00:01:07", 50e9),
    ]


def test_a_host_with_ipv6_alone_is_told_with_its_links() -> None:
    put = World(view("approved"), facts=lambda: RAILS[1:]).run().asked[0][2]
    assert put.request is not None
    assert (put.request.addresses, put.request.mac) == ((), RAILS[1].mac)
    assert [(each.interface, each.addresses) for each in put.request.links] == [("eth1", ("fd01::7",))]


def test_ipv4_of_the_first_interface_is_waited_for_a_while() -> None:
    now = 100.0
    looks = [(RAILS[1],), (RAILS[0],), (RAILS[1],), (RAILS[1],)]
    facts = waiting_for_ipv4(lambda: looks.pop(0), lambda: now)
    with pytest.raises(InterfaceError, match="eth1 has no IPv4 address yet; after 30 s the host enrols with IPv6"):
        facts()
    assert facts() == (RAILS[0],)
    now += IPV4_SECONDS - 1
    with pytest.raises(InterfaceError, match="no IPv4 address yet"):
        facts()
    now += 1
    assert facts() == (RAILS[1],)


def test_one_interface_with_ipv4_alone_is_told_as_agents_of_earlier_versions_do() -> None:
    world = World(view("approved")).run()
    assert "links" not in world.bodies[0]


def test_an_older_controller_is_told_the_first_interface_alone(caplog: pytest.LogCaptureFixture) -> None:
    unknown = problem(422, "request.links: there is no such field", [("request.links", "there is no such field")])
    world = World(unknown, view("pending"), view("approved"), facts=lambda: RAILS).run()
    assert [len(put.request.links) for _, _, put in world.asked if put.request is not None] == [2, 0, 0]
    assert world.slept == [5.0], "it asks again at once"
    assert ["it is told eth0 alone" in message for message in caplog.messages] == [True]


def test_a_link_that_the_controller_does_not_like_is_no_reason_to_leave_all_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = problem(422, "request.links.1.mac: no", [("request.links.1.mac", "no")])
    world = World(wrong, view("approved"), facts=lambda: RAILS).run()
    assert [len(put.request.links) for _, _, put in world.asked if put.request is not None] == [2, 2]
    assert caplog.messages == ["the host cannot enrol: request.links.1.mac: no"]


def test_all_interfaces_are_announced_with_the_secret_of_the_host() -> None:
    world = World(view("pending", announcement=SECRET), view("approved"), facts=lambda: RAILS).run()
    assert world.sent[:2] == [(each.name, "h7", Announcement(str(each.mac), SECRET)) for each in RAILS]


def test_it_announces_itself_as_long_as_it_is_looked_for() -> None:
    world = World(view("pending", announcement=SECRET), view("pending"), view("approved")).run()
    assert world.sent == [("eth0", "h7", Announcement("02:00:00:00:00:07", SECRET))] * 3
    assert world.slept == [ANNOUNCE_SECONDS, ANNOUNCE_SECONDS, 1.0, 5.0]
    assert world.secret == SECRET, "it is kept, for a change of the cable"


def test_a_host_that_is_approved_and_not_found_goes_on_after_a_while() -> None:
    looked_for = view("approved", announcement=SECRET)
    assert len(World(looked_for, looked_for, looked_for, looked_for).run().sent) == 9


def test_what_cannot_be_sent_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    pending = view("pending", announcement=SECRET)
    world = World(pending, pending, view("approved"), unsent="the agent may not").run()
    assert len(world.sent) == 2
    assert world.slept == [5.0, 5.0]
    assert caplog.messages == ["the host cannot be found at its switch: the agent may not"]


@pytest.mark.parametrize(
    ("answer", "said", "pause"),
    [
        (problem(401, "the token is not known here"), "the token is not known here", REFUSED_SECONDS),
        (problem(409, "the address 10.0.0.7 is taken"), "the address 10.0.0.7 is taken", REFUSED_SECONDS),
        (problem(404, "there is nothing"), "the controller is older than this agent", REFUSED_SECONDS),
        (Answer(200, None, b"<html>"), "what answers is no controller of this version", REFUSED_SECONDS),
        (view("refused"), "an operator has refused host h7", REFUSED_SECONDS),
        (UnreachableError("refused"), "the controller does not answer: refused", None),
    ],
)
def test_each_obstacle_is_said_and_it_asks_again(
    caplog: pytest.LogCaptureFixture, answer: Any, said: str, pause: float | None
) -> None:
    world = World(answer, answer, view("approved")).run()
    assert [said in message for message in caplog.messages] == [True]
    assert pause is None or world.slept == [pause, pause]


@pytest.mark.parametrize("status", [429, 503])
def test_a_controller_that_is_busy_is_asked_again_soon(caplog: pytest.LogCaptureFixture, status: int) -> None:
    world = World(problem(status, "too many requests"), view("approved")).run()
    assert len(world.slept) == 1
    assert world.slept[0] <= 1.0
    assert caplog.messages == []


def test_an_interface_that_comes_up_later_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    looks = iter([InterfaceError("interface eth0 has no IPv4 address"), (FACTS,)])

    def facts() -> tuple[InterfaceFacts, ...]:
        look = next(looks)
        if isinstance(look, Exception):
            raise look
        return look

    assert len(World(view("approved"), facts=facts).run().asked) == 1
    assert caplog.messages == ["the host cannot enrol: interface eth0 has no IPv4 address"]

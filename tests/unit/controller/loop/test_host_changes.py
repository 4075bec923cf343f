"""Hosts that were approved come and go in a running loop: what is approved at once, and what changes for the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import eventlet
import pytest

from controller.loop.host_changes import AT_ONCE, CHECK_FOR_SECONDS, CHECK_SECONDS
from controller.model import Snapshot
from controller.refusals import Conflict, Invalid
from controller.rules.compiler import compile_rules
from controller.wire import HostDecision, HostRequest, JobSpec
from controller.wire.announcement import Announcement
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.yard import Yard

ADDRESS = "10.0.0.7"


def request(number: int = 7, **changed: Any) -> HostRequest:
    told = {
        "addresses": (f"10.0.0.{number}",),
        "mac": f"02:00:00:00:00:{number:02x}",
        "token_sha256": f"{number:064x}",
    }
    return HostRequest.model_validate(told | changed)


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Yard] = []

    def make(**settings: Any) -> Yard:
        made.append(Yard(**{"enrolment": {"approve": "at-once"}} | settings).start())
        return made[-1]

    yield make
    for yard in made:
        yard.stop()


def test_who_asks_from_its_own_address_is_approved_at_once_where_the_settings_say_so(make: Any) -> None:
    yard = make()
    asked = yard.hosts.ask("h7", request(), ADDRESS)
    assert (asked.state, asked.decided_by) == ("approved", AT_ONCE)
    assert "h7" in yard.registry.hosts
    assert "h7" in yard.current.hosts
    assert yard.hosts.ask("h8", request(8), "::ffff:10.0.0.8").state == "approved"


def ipv6_alone(*addresses: str) -> HostRequest:
    mac = "02:00:00:00:00:07"
    links = [{"interface": "eth0", "addresses": list(addresses), "mac": mac}]
    return request(addresses=(), interface="eth0", mac=mac, links=links)


def test_a_host_with_ipv6_alone_is_approved_at_once_by_the_same_rules(make: Any) -> None:
    yard = make(enrolment={"approve": "at-once", "networks": ["10.0.0.0/16", "fd00::/16"]})
    with pytest.raises(Invalid) as refused:
        yard.hosts.ask("h7", ipv6_alone("2001:db8::7"), "2001:db8::7")
    assert refused.value.errors == (
        ("request.links.0.addresses", "2001:db8::7 is in none of the networks of hosts that may enrol"),
    )
    told = ipv6_alone("2001:db8::7", "fd00::7")
    assert yard.hosts.ask("h7", told, "2001:db8::7").state == "pending", "this address is not taken"
    asked = yard.hosts.ask("h7", told, "fd00::7")
    assert (asked.state, asked.address) == ("approved", "fd00::7")
    assert yard.registry.hosts["h7"].addresses == ("fd00::7",)


def test_by_default_nobody_is(make: Any) -> None:
    yard = make(enrolment={})
    asked = yard.hosts.ask("h7", request(), ADDRESS)
    assert (asked.state, yard.hosts.problems(asked)) == ("pending", ())
    assert "h7" not in yard.registry.hosts


def test_who_cannot_be_believed_waits_for_an_operator_who_is_told_why(make: Any) -> None:
    yard = make()
    elsewhere = yard.hosts.ask("h7", request(), "10.0.0.66")
    assert elsewhere.state == "pending"
    assert yard.hosts.problems(elsewhere) == (
        "an operator decides: it has asked from 10.0.0.66, which is none of its addresses",
    )
    rival = yard.hosts.ask("h8", request(8, addresses=("10.0.0.7",)), ADDRESS)
    assert rival.state == "pending"
    assert yard.hosts.problems(rival) == ("the address 10.0.0.7 is that of h7, which waits too",)


def test_where_ports_are_needed_nobody_is_approved_before_it_is_found(make: Any) -> None:
    hosts = [{"name": "h1", "address": "10.0.0.1", "switch": 1, "port": 1}]
    yard = make(hosts=hosts, forwarding="paths")
    asked = yard.hosts.ask("h7", request(), ADDRESS)
    assert asked.state == "pending"
    yard.hosts.announced(1, 7, Announcement(str(asked.request.mac), asked.announcement))
    assert yard.hosts.ask("h7", request(), ADDRESS).state == "approved"
    assert yard.registry.hosts["h7"].switch_port == 7


def test_a_host_that_is_found_after_its_approval_gets_its_port(make: Any) -> None:
    yard = make()
    asked = yard.hosts.ask("h7", request(), ADDRESS)
    assert yard.registry.hosts["h7"].switch is None
    yard.hosts.announced(1, 7, Announcement(str(asked.request.mac), asked.announcement))
    wait_until(lambda: yard.registry.hosts["h7"].switch_port == 7, sleep=eventlet.sleep)


def test_a_new_host_costs_the_others_no_rule(make: Any) -> None:
    yard = make()
    yard.put("a", 5000)

    def rules() -> Any:
        known = yard.loop.snapshot
        return compile_rules(known, {"a": 0}, mode="classified", forwarding="normal")

    wait_until(lambda: yard.loop.snapshot.jobs, sleep=eventlet.sleep)
    before, plans = rules(), yard.plans()
    yard.hosts.ask("h7", request(), ADDRESS)
    wait_until(lambda: yard.plans() > plans, sleep=eventlet.sleep)
    assert "h7" in yard.loop.snapshot.hosts
    assert rules() == before
    assert isinstance(yard.loop.snapshot, Snapshot)


def test_a_job_on_the_host_keeps_it_unless_it_is_forced(make: Any) -> None:
    yard = make()
    yard.hosts.ask("h7", request(), ADDRESS)
    spec = {"tasks": [{"role": "ps", "host": "h7", "port": 5000}, {"role": "worker", "host": "h2"}]}
    for name in ("a", "b"):
        spec["tasks"][0]["port"] = 5000 + ord(name)
        yard.registry.put_job(name, JobSpec.model_validate(spec), time.monotonic())
    with pytest.raises(Conflict, match="jobs run on h7: a, b; let them end, or force it"):
        yard.hosts.remove("h7", time.monotonic(), is_forced=False)
    assert "h7" in yard.registry.hosts
    yard.hosts.remove("h7", time.monotonic(), is_forced=True)
    assert "h7" not in yard.registry.hosts
    assert not yard.registry.has_job("a")


@pytest.mark.usefixtures("frozen_heap")
def test_many_hosts_are_added_quickly(make: Any) -> None:
    yard = make(enrolment={"most_waiting_per_address": 2000})
    for number in range(1000):
        address = f"10.1.{number // 250}.{number % 250 + 1}"
        mac = f"02:00:00:01:{number // 256:02x}:{number % 256:02x}"
        told = request(addresses=(address,), mac=mac, token_sha256=f"{number:064x}")
        yard.hosts.ask(f"n{number}", told, "192.0.2.1")
    began = time.thread_time()
    for number in range(0, 1000, 100):
        yard.hosts.decide(f"n{number}", HostDecision(state="approved"), "ann")
    assert (time.thread_time() - began) / 10 < 0.5
    assert len(yard.registry.hosts) == 13


def test_a_host_with_another_cable_is_followed_with_the_next_plan(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    yard = make()
    asked = yard.hosts.ask("h7", request(), ADDRESS)
    for port in (7, 8):
        yard.hosts.announced(1, port, Announcement(str(asked.request.mac), asked.announcement))
        wait_until(lambda port=port: yard.registry.hosts["h7"].switch_port == port, 10, sleep=eventlet.sleep)
    assert "host h7 has another cable: it was at port 7 of switch 0000000000000001" in caplog.text


def test_switches_hand_announcements_on_when_a_port_changes_and_now_and_then(make: Any) -> None:
    yard = make()
    hosts = yard.hosts
    now = time.monotonic()
    assert hosts._is_checking(now + 1), "a cable may have changed while no controller ran"
    assert not hosts._is_checking(now + CHECK_FOR_SECONDS + 1)
    assert not hosts._is_checking(now + CHECK_FOR_SECONDS + CHECK_SECONDS)
    assert hosts._is_checking(now + CHECK_FOR_SECONDS + CHECK_SECONDS + 2)
    hosts.check_soon()
    assert hosts._is_checking(time.monotonic())

"""Marks of packets over IPv6 on a real cable, by real ip6tables: what leaves, what is counted, repaired, taken away."""

from __future__ import annotations

import logging
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from controller.wire import HostPlan
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.sockets.links import Link
from host_reporter.marking import iptables
from host_reporter.marking.enforcement import Enforcement
from host_reporter.marking.families import IPV6
from host_reporter.marking.iptables import Marker
from host_reporter.marking.iptables_tool import IptablesTool
from host_reporter.notices import Notices
from tests.support.agent.cabled_host import INTERFACE, PEER, PEER_IPV6, PORT, cabled_host
from tests.support.host.repaired import sh, variants, walked

ECT = 0b10
_ALL, _IPV6, _TCP, _HEADER_BYTES = 0x0003, 0x86DD, 6, 40


class Sent(NamedTuple):
    """The traffic classes of the packets that left over IPv6, with data and without."""

    data: set[int]
    empty: set[int]


def sent_while(act: Callable[[], object]) -> Sent:
    """Returns what leaves by the interface during an action."""
    sent = Sent(set(), set())
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL)) as raw:
        raw.bind((INTERFACE, _ALL))
        act()
        while select.select([raw], [], [], 0.3)[0]:
            packet, where = raw.recvfrom(65536)
            if where[1] != _IPV6 or where[2] != socket.PACKET_OUTGOING or packet[6] != _TCP:
                continue
            is_empty = len(packet) == _HEADER_BYTES + (packet[_HEADER_BYTES + 12] >> 4) * 4
            (sent.empty if is_empty else sent.data).add(int.from_bytes(packet[:2], "big") >> 4 & 0xFF)
    return sent


def plan(**more: Any) -> HostPlan:
    values = {
        "host": "h1", "epoch": 1, "policy": "fifo", "mode": "marked", "class_dscp": (59, 51, 43),
        "class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e8,
    }  # fmt: skip
    return HostPlan.model_validate(values | more)


WHOLE = {"job": "a", "service_class": 0, "dscp": 59}


class Host:
    def __init__(self, variant: str, connection: socket.socket) -> None:
        self.connection = connection
        self.enforcement = Enforcement(Marker(), None, Notices(logging.getLogger("agent")), marker_ipv6=Marker(IPV6))
        self.variant = IPV6.variant(variant)
        local = connection.getsockname()[1]
        self.sources = PacketSources(
            frozenset("a"), {}, {"a": frozenset({Link(socket.inet_pton(socket.AF_INET6, PEER_IPV6), local, PORT)})}
        )

    def sent(self) -> Sent:
        return sent_while(lambda: self.connection.sendall(bytes(1000)))

    def saved(self) -> str:
        return sh(f"{self.variant}-save -t mangle | grep -v '^#'")


@pytest.fixture(params=variants())
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(iptables, "VARIANTS", (request.param,))
    with cabled_host(), socket.create_connection((PEER_IPV6, PORT), 10) as connection:
        made = Host(request.param, connection)
        yield made
        made.enforcement.remove()
        assert "TRAINYARD" not in made.saved()


def test_a_job_is_marked_counted_and_cleared_over_ipv6_like_over_ipv4(host: Host) -> None:
    claimed = 51 << 2 | ECT
    host.connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, claimed)
    asked = host.connection.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    assert host.sent().data == {asked}
    host.enforcement.set_sources(host.sources)
    assert host.enforcement.apply(plan(marks=(WHOLE,)))
    assert host.enforcement.marking == (True, True, ())
    assert host.sent().data == {59 << 2 | asked & 3}
    # A new class is one transaction; what opens a connection goes first.
    assert host.enforcement.apply(plan(marks=(WHOLE | {"dscp": 43},)), look=False)
    assert host.sent().data == {43 << 2 | asked & 3}
    counted = host.enforcement.sent_bytes()
    assert counted == {}, "the agent counts a followed job's bytes at its sockets"
    # Whose marks are gone is other traffic, whatever it claims.
    assert host.enforcement.apply(plan())
    assert host.sent().data == {asked & 3}


def test_a_mark_by_address_counts_its_bytes(host: Host) -> None:
    marks = [
        {"job": "b", "service_class": 1, "dscp": 51, "remote": remote, "remote_port": PORT}
        for remote in (PEER, PEER_IPV6)
    ]
    assert host.enforcement.apply(plan(marks=marks))
    assert host.sent().data == {51 << 2}
    over_ipv6 = host.enforcement.sent_bytes()["b"].bytes
    assert over_ipv6 >= 1000 + _HEADER_BYTES
    with socket.create_connection((PEER, PORT), 10) as other:
        other.sendall(bytes(5000))
    assert host.enforcement.sent_bytes()["b"].bytes >= over_ipv6 + 5000, "both families are one sum"


def test_packets_without_data_go_first(host: Host) -> None:
    assert host.enforcement.apply(plan(marks=[WHOLE | {"remote": PEER_IPV6, "remote_port": PORT, "dscp": 43}]))
    with socket.socket(socket.AF_INET6) as late:

        def act() -> None:
            late.connect((PEER_IPV6, PORT))
            late.sendall(bytes(100))

        assert sent_while(act) == ({43 << 2}, {63 << 2})


def test_what_others_change_is_put_back_and_said(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    assert host.enforcement.apply(plan(marks=[WHOLE | {"remote_port": PORT}]))
    host.enforcement.reconcile()
    assert not caplog.records
    before = walked(host.saved())
    sh(f"{host.variant} -t mangle -F TRAINYARD-CLEAR")
    host.enforcement.reconcile()
    assert walked(host.saved()) == before
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("somebody else has changed this host's packet filter (ip6tables, table mangle): ")
    assert "all rules of chain TRAINYARD-CLEAR (8) were gone" in said


def test_new_classes_of_both_families_cost_no_reading_of_the_tables(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = WHOLE | {"remote_port": PORT}
    assert host.enforcement.apply(plan(marks=[mark]))
    host.enforcement.reconcile()
    listings: list[IptablesTool] = []

    def save(tool: IptablesTool) -> str:
        listings.append(tool)
        return ""

    with monkeypatch.context() as patched:
        patched.setattr(IptablesTool, "save", save)
        for dscp in (51, 43, 59):
            assert host.enforcement.apply(plan(marks=[mark | {"dscp": dscp}]), look=False)
            host.enforcement.reconcile()
    assert listings == []

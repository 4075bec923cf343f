"""When what was found is told: other links at once, bytes now and then, and what nobody knows is said once."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Mapping

import pytest

from controller.wire import JobTraffic
from host_reporter.discovery.reports import BYTES_SECONDS, MAX_UNKNOWN_LOGGED, REPEAT_SECONDS, Reports
from host_reporter.discovery.sockets.links import Link
from host_reporter.discovery.sockets.table import Ends, Traffic
from host_reporter.discovery.traffic_report import FoundTraffic
from host_reporter.notices import Notices

HERE, PEER = socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.0.2")
ADDRESSES = {"10.0.0.1": "h1", "10.0.0.2": "h2"}


class Reported:
    def __init__(self) -> None:
        self.parts: list[JobTraffic] = []
        self.reports = Reports("h1", self, Notices(logging.getLogger("test")))
        self.reports.begin("a")

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        self.parts += parts

    def tell(self, now: float, *links: Link, sent: int = 0) -> int:
        """How many parts it is told in."""
        before = len(self.parts)
        self.reports.report(
            {"a": FoundTraffic(frozenset(links), len(links), {Ends(HERE, PEER): Traffic(sent, 0)})}, ADDRESSES, now
        )
        return len(self.parts) - before


def test_links_are_told_at_once_and_bytes_in_their_turn() -> None:
    reported = Reported()
    assert reported.tell(0.0) == 1, "a job without a connection is told too"
    assert reported.tell(1.0, Link(PEER, 1, 2)) == 1
    assert reported.tell(2.0, Link(PEER, 1, 2), sent=9) == 0
    assert reported.tell(1.0 + BYTES_SECONDS, Link(PEER, 1, 2), sent=9) == 1
    assert reported.parts[-1].links is None and reported.parts[-1].peers[0].sent == 9.0
    assert reported.tell(2.0 + 2 * BYTES_SECONDS, Link(PEER, 1, 2), sent=9) == 0, "nothing is new"
    assert reported.tell(1.0 + REPEAT_SECONDS, Link(PEER, 1, 2), sent=9) == 1
    assert reported.parts[-1].links is not None


def test_other_addresses_and_the_end_are_told() -> None:
    reported = Reported()
    reported.tell(0.0, Link(PEER, 1, 2))
    reported.reports.report_all_again()
    assert reported.tell(0.5, Link(PEER, 1, 2)) == 1
    reported.reports.end(["a", "unknown"])
    assert (reported.parts[-1].links, reported.parts[-1].connections) == ((), 0)
    reported.reports.begin("a")
    assert reported.tell(1.0, Link(PEER, 1, 2)) == 1
    assert reported.parts[-1].counter > reported.parts[0].counter, "bytes count anew"


def test_ten_thousand_connections_a_minute_with_nothing_in_common_are_a_report_a_look() -> None:
    reported = Reported()
    for second in range(60):
        reported.tell(float(second), *(Link(PEER, 20_000 + second * 167 + n, n + 1) for n in range(167)))
    assert len(reported.parts) == 60
    assert all(len(part.links or ()) == 167 for part in reported.parts)


def test_addresses_that_are_no_hosts_are_said_once_each_and_not_without_end(caplog: pytest.LogCaptureFixture) -> None:
    reported = Reported()
    for second in range(50):
        reported.tell(float(second), *(Link(bytes((192, 0, 2, n)), 1, 2) for n in range(second + 1)))
    assert len(caplog.records) == MAX_UNKNOWN_LOGGED + 1
    assert caplog.text.count("192.0.2.0 is no host") == 1
    assert caplog.text.count("more addresses") == 1
    assert all(part.links == () for part in reported.parts if part.links is not None)


RAIL, RAIL_IPV6 = socket.inet_aton("10.1.0.1"), socket.inet_pton(socket.AF_INET6, "fd01::1")
RAILS = ADDRESSES | {"10.1.0.1": "h1", "fd01::1": "h1", "10.1.0.2": "h2"}
INTERFACES = {"10.0.0.1": "eth0", "10.1.0.1": "eth1", "fd01::1": "eth1", "10.0.0.2": "eth0", "10.1.0.2": "eth1"}


def told(links: set[Link], traffic: Mapping[Ends, Traffic], interfaces: Mapping[str, str] = INTERFACES) -> JobTraffic:
    reported = Reported()
    reported.reports.report({"a": FoundTraffic(frozenset(links), len(links), traffic)}, RAILS, 0.0, interfaces)
    (part,) = reported.parts
    return part


def test_a_peer_with_several_interfaces_is_named_by_the_interface_that_is_used() -> None:
    other = socket.inet_aton("10.1.0.2")
    links = {Link(PEER, None, 5000), Link(other, None, 5000), Link(RAIL, None, 7)}
    part = told(links, {Ends(HERE, PEER): Traffic(10, 1), Ends(HERE, other): Traffic(20, 2)})
    assert [link.peer for link in part.links or ()] == ["h2/eth0", "h2/eth1"], "its own interfaces are no peers"
    assert [(peer.peer, peer.sent) for peer in part.peers] == [("h2/eth0", 10.0), ("h2/eth1", 20.0)]


def test_the_hosts_own_interface_is_that_of_the_address_which_is_used_here() -> None:
    links = {Link(PEER, None, 5000, HERE), Link(PEER, None, 5000, RAIL), Link(PEER, None, 5000, RAIL_IPV6)}
    traffic = dict.fromkeys((Ends(local, PEER) for local in (HERE, RAIL, RAIL_IPV6)), Traffic(10, 1))
    part = told(links, traffic)
    named = [(link.peer, link.interface) for link in part.links or ()]
    assert named == [("h2/eth0", "eth0"), ("h2/eth0", "eth1")], "two addresses of one interface are one link"
    assert [(peer.interface, peer.sent, peer.received) for peer in part.peers] == [("eth0", 10, 1), ("eth1", 20, 2)]


def test_an_address_of_no_interface_of_the_host_names_none() -> None:
    container = socket.inet_aton("172.17.0.2")
    part = told({Link(PEER, None, 5000, container)}, {Ends(container, PEER): Traffic(10, 1)})
    assert [link.interface for link in (*(part.links or ()), *part.peers)] == [None, None]
    # An address of another host is none of its own: a load balancer's may be on both.
    others = told({Link(PEER, None, 5000, PEER)}, {Ends(PEER, PEER): Traffic(10, 1)})
    assert [link.interface for link in (*(others.links or ()), *others.peers)] == [None, None]


def test_a_host_with_one_interface_names_none_as_an_older_controller_understands() -> None:
    part = told({Link(PEER, None, 5000, HERE)}, {Ends(HERE, PEER): Traffic(10, 1)}, {})
    assert "interface" not in part.model_dump_json(exclude_defaults=True)

"""When what was found is told: other links at once, bytes now and then, and what nobody knows is said once."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable

import pytest

from controller.wire import JobTraffic
from host_reporter.discovery.links import Link
from host_reporter.discovery.reports import BYTES_SECONDS, MAX_UNKNOWN_LOGGED, REPEAT_SECONDS, Reports
from host_reporter.discovery.socket_table import Traffic
from host_reporter.discovery.traffic_report import FoundTraffic
from host_reporter.notices import Notices

PEER = socket.inet_aton("10.0.0.2")
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
        self.reports.report({"a": FoundTraffic(frozenset(links), len(links), {PEER: Traffic(sent, 0)})}, ADDRESSES, now)
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

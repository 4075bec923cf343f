"""Marks of both address families: what differs in the rules, one that fails beside the other, and bytes of both."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from controller.code_points import POOL_2, CodePoints
from controller.wire import HostPlan, Mark, ProtocolMark
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.sockets.links import Link
from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.marking.families import IPV4, IPV6, Family, Reach, family_of, ipv6_reach
from host_reporter.marking.iptables import Change, IptablesError, Marker
from host_reporter.marking.marks_here import by_group, by_link
from host_reporter.marking.obstacles import obstacles
from host_reporter.marking.outer_headers import NO_TUNNELS, Inside, Outer
from host_reporter.marking.rules_text import AnyMark, GroupMark, MarkError, Sent, new_classes, switch_over
from host_reporter.marking.sent import SentOverFamilies
from host_reporter.marking.table_version import OVER_IPV6, split
from host_reporter.nic.netdev import Tunnel
from host_reporter.notices import Notices

PEER, PEER_IPV6 = socket.inet_aton("10.0.0.2"), socket.inet_pton(socket.AF_INET6, "fd00::2")
WHOLE = Mark(job="a", service_class=0, dscp=59)
PORT = Mark(job="b", service_class=1, dscp=51, local_port=5000)
TO_IPV4 = PORT.model_copy(update={"remote": "10.0.0.2"})
TO_IPV6 = PORT.model_copy(update={"remote": "FD00:0::2"})
LINKS = PacketSources(frozenset("a"), {}, {"a": frozenset({Link(PEER, 1, 2), Link(PEER_IPV6, 3, None)})})
GROUP = CgroupId("/jobs/a", 44)
GROUPED = PacketSources(frozenset("a"), {"a": GROUP}, LINKS.links)


class Filters(Marker):
    """Notes what it is to mark. ``refuses``: why it refuses everything."""

    def __init__(self, family: Family, refuses: str = "") -> None:
        super().__init__(family)
        self.refuses, self.tries = refuses, 0
        self.marks: tuple[AnyMark, ...] | None = None
        self.headers, self.can_look = NO_TUNNELS, True
        self.sent: Mapping[str, Sent] = {}

    def apply(
        self, marks: Sequence[AnyMark], points: CodePoints = POOL_2, outer: Outer = NO_TUNNELS
    ) -> tuple[str, ...]:
        self.tries += 1
        if self.refuses:
            raise IptablesError(self.refuses)
        self.marks, self.headers, self._is_up = tuple(marks), outer._replace(can_look=self.can_look), True
        return ()

    @property
    def outer(self) -> Outer:
        return self.headers

    def changed(self) -> tuple[str, ...]:
        return ()

    def remove(self) -> None:
        self._is_up = False

    def sent_bytes(self) -> Mapping[str, Sent]:
        return self.sent


class Host:
    def __init__(self, reach: Reach = "network", refuses: str = "") -> None:
        self.ipv4, self.ipv6 = Filters(IPV4), Filters(IPV6, refuses)
        self.sockets: tuple[set[str], set[str]] = (set(), set())
        self.reach: Reach = reach
        self.enforcement = Enforcement(
            self.ipv4,
            None,
            Notices(logging.getLogger("test")),
            marker_ipv6=self.ipv6,
            mark_sockets=self._mark_sockets,
            reach=lambda: self.reach,
        )

    def _mark_sockets(
        self, _dscps: Mapping[str, int], everywhere: Iterable[str], _points: CodePoints | None, over_ipv6: Iterable[str]
    ) -> None:
        self.sockets = (set(everywhere), set(over_ipv6))


def plan(*marks: Mark) -> HostPlan:
    return HostPlan(
        host="h1", epoch=1, policy="fifo", mode="marked", class_floor=0.01, other_floor=0.1, egress_bps=1e9,
        marks=marks, class_dscp=(59, 51),
    )  # fmt: skip


def test_rules_of_ipv6_name_its_addresses_and_allow_for_its_longer_header() -> None:
    text = switch_over([TO_IPV6, GroupMark("a", 59, GROUP)], 0, jump=True, family=IPV6)
    assert "-A TRAINYARD-A -p tcp -d fd00::2 --sport 5000 -g TRAINYARD-A0\n" in text
    assert "-m length --length 0:100 -j DSCP --set-dscp 63" in text
    assert '-A TRAINYARD-A -p tcp -m cgroup --path "/jobs/a" -g TRAINYARD-A1\n' in text
    # All else is alike: the same chains, the same clearing.
    assert switch_over([PORT], 1, jump=True, family=IPV6) == switch_over([PORT], 1, jump=True).replace("0:80", "0:100")


@pytest.mark.parametrize(
    ("remote", "family"), [("10.0.0.2", IPV6), ("fd00::2", IPV4), ("fd00::2/64", IPV6), ("fd00::2%eth0", IPV6)]
)
def test_an_address_that_is_none_of_the_family_becomes_no_rule(remote: str, family: Family) -> None:
    with pytest.raises(MarkError, match=f"{remote}' is no {family.name} address"):
        switch_over([PORT.model_copy(update={"remote": remote})], 0, jump=True, family=family)


def test_each_family_gets_the_marks_that_its_packets_can_match() -> None:
    given = [WHOLE, PORT, TO_IPV4, TO_IPV6]
    assert by_link(given, LINKS).marks[1:] == (PORT, TO_IPV4)
    assert by_link(given, LINKS, IPV6).marks[1:] == (PORT, TO_IPV6)
    ours = [by_link([WHOLE], LINKS, family).marks[0] for family in (IPV4, IPV6)]
    assert [(mark.remote, mark.local_port) for mark in ours if isinstance(mark, Mark)] == [
        ("10.0.0.2", 1),
        ("fd00::2", 3),
    ]
    assert by_group([WHOLE], GROUPED, IPV6).marks == (GroupMark("a", 59, GROUP),)


def test_both_families_are_marked_and_given_up() -> None:
    host = Host()
    host.enforcement.set_sources(LINKS)
    assert host.enforcement.apply(plan(WHOLE, PORT))
    assert host.ipv4.marks is not None and host.ipv6.marks is not None
    assert len(host.ipv4.marks) == len(host.ipv6.marks) == 2
    # A new connection over IPv6 is marked, too.
    more = LINKS.links["a"] | {Link(PEER_IPV6, 9, 9)}
    host.enforcement.set_sources(PacketSources(LINKS.jobs, {}, {"a": more}))
    assert [len(marker.marks or ()) for marker in (host.ipv4, host.ipv6)] == [2, 3]


def test_without_ip6tables_that_is_said_and_ipv4_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(refuses="ip6tables-restore is not installed")
    host.enforcement.set_sources(LINKS)
    for _ in range(3):
        assert not host.enforcement.apply(plan(WHOLE), look=False)
    assert host.ipv4.marks is not None and len(host.ipv4.marks) == 1
    assert host.sockets == (set(), {"a"}), "sockets over IPv6 are marked one by one"
    assert host.ipv6.tries == 1, "no processes for each plan"
    assert [record.getMessage() for record in caplog.records] == [
        "this host's IPv6 traffic is not marked: ip6tables-restore is not installed; sockets that are found are marked "
        "one by one"
    ]
    # Once a minute all is tried again.
    host.ipv6.refuses = ""
    assert host.enforcement.apply(plan(WHOLE), look=True)
    assert host.ipv6.marks is not None and host.sockets == (set(), set())


def test_a_host_without_ipv6_starts_nothing_for_it_and_one_with_a_link_alone_only_clears(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host("nothing")
    host.enforcement.set_sources(GROUPED)
    assert host.enforcement.apply(plan(WHOLE)) and host.ipv6.tries == 0
    host.reach = "link"
    assert host.enforcement.apply(plan(WHOLE)) and host.ipv6.marks == ()
    host.reach = "network"
    assert host.enforcement.apply(plan(WHOLE)) and host.ipv6.marks == (GroupMark("a", 59, GROUP),)
    host.reach, host.ipv6.refuses = "link", "no ip6tables"
    assert host.enforcement.apply(plan(WHOLE)) and host.sockets == (set(), set())
    assert not caplog.records


def test_what_the_host_marks_is_told_as_far_as_it_is_known() -> None:
    host = Host(refuses="ip6tables-restore is not installed")
    assert host.enforcement.marking.jobs is None, "there is no plan yet"
    host.enforcement.apply(plan(WHOLE))
    assert host.enforcement.marking == Marking(jobs=True, acknowledgements=False), "IPv4 goes on"
    host.ipv4.refuses = "no permission"
    host.enforcement.apply(plan(WHOLE, PORT))
    assert host.enforcement.marking.jobs is None, "sockets are marked one by one, as far as that works"
    host.ipv4.refuses = ""
    host.enforcement.apply(plan(WHOLE))
    assert host.enforcement.marking.jobs is True
    host.enforcement.apply(plan(WHOLE).model_copy(update={"paused": True}))
    assert host.enforcement.marking.jobs is False
    host.enforcement.apply(plan(WHOLE))
    assert host.enforcement.marking.jobs is True


def test_an_agent_that_is_not_to_mark_says_so() -> None:
    enforcement = Enforcement(None, None, Notices(logging.getLogger("test")))
    enforcement.apply(plan(WHOLE))
    assert enforcement.marking == Marking(jobs=False, acknowledgements=False)


def test_how_far_addresses_reach_is_in_the_kernels_file(tmp_path: Path) -> None:
    file = tmp_path / "if_inet6"
    assert ipv6_reach(file) == "nothing"
    file.write_text("00000000000000000000000000000001 01 80 10 80       lo\n")
    assert ipv6_reach(file) == "nothing"
    link = "fe800000000000000000000000000001 02 40 20 80     eth0\n"
    file.write_text(file.read_text() + link)
    assert ipv6_reach(file) == "link"
    file.write_text(link + "fd000000000000000000000000000002 02 40 00 80     eth0\n")
    assert ipv6_reach(file) == "network"


def test_the_tool_of_a_family_has_the_variants_of_the_other() -> None:
    assert IPV6.variant("iptables-legacy") == "ip6tables-legacy" and IPV4.variant("iptables") == "iptables"
    assert family_of("ip6tables-nft") is IPV6 and family_of("iptables-legacy") is IPV4


def test_bytes_of_both_families_are_one_sum_that_never_falls() -> None:
    sums = SentOverFamilies()
    assert sums.add([{"a": Sent(10, 0)}, {}]) == {"a": Sent(10, 0)}
    assert sums.add([{"a": Sent(15, 0)}, {"a": Sent(7, 3)}]) == {"a": Sent(22, 0)}
    # A family's marks go with the last connection over it; what was sent stays sent.
    assert sums.add([{"a": Sent(16, 0)}, {}]) == {"a": Sent(23, 0)}
    assert sums.add([{"a": Sent(16, 0)}, {"a": Sent(1, 4)}]) == {"a": Sent(24, 0)}
    # A job that came back has new counters in all of them.
    assert sums.add([{"a": Sent(2, 5)}, {"a": Sent(3, 6)}]) == {"a": Sent(5, 1)}
    assert sums.add([{}, {}]) == {}
    assert sums.add([{"b": Sent(1, 0)}, {}]) == {"b": Sent(1, 2)}


def test_a_job_is_counted_over_both_families() -> None:
    host = Host()
    host.ipv4.sent, host.ipv6.sent = {"a": Sent(1), "b": Sent(2)}, {"a": Sent(4)}
    assert {job: sent.bytes for job, sent in host.enforcement.sent_bytes().items()} == {"a": 5, "b": 2}


def test_what_the_agent_changes_in_one_family_is_no_news_in_the_other() -> None:
    marker = Marker(IPV6)
    marker._version = 7
    marker.follow(Change(6, 7))
    assert marker._version == 7
    marker.follow(Change(7, 8))
    assert marker._version == 8


def test_an_obstacle_is_removed_with_the_tool_of_its_family() -> None:
    seen = {"OUTPUT": ("-p tcp -j ACCEPT", "-j TRAINYARD")}
    (sentence,) = obstacles(seen, IPV6.tool)
    assert "(ip6tables -t mangle -D OUTPUT 1)" in sentence


def test_entries_of_ip6tables_are_equal_whatever_they_have_counted() -> None:
    def entry(counted: int, last: bytes) -> bytes:
        head = bytes(142) + struct.pack("=HIxxxxQQ", 172, 0, counted, counted)[:26]
        return head + last

    first, second = entry(0, b"rule") + entry(5, b"more"), entry(9, b"rule") + entry(7, b"more")
    assert len(entry(0, b"rule")) == 172
    assert split(first, OVER_IPV6) == split(second, OVER_IPV6) and len(split(first, OVER_IPV6)) == 2
    assert split(first, OVER_IPV6) != split(entry(0, b"rule") + entry(5, b"othr"), OVER_IPV6)


def test_the_packets_of_tunnels_get_the_dscps_of_jobs_as_long_as_there_are_any() -> None:
    host, tunnel, present = Host(), Tunnel("vxlan", 4789), [Tunnel("vxlan", 4789, inherits=True)]

    def tunnels() -> list[Tunnel]:
        if not present:
            raise OSError("not now")
        return present

    host.enforcement = Enforcement(
        host.ipv4, None, Notices(logging.getLogger("test")), marker_ipv6=host.ipv6, reach=lambda: host.reach,
        tunnels=tunnels,
    )  # fmt: skip
    pod = bytes([10, 244, 0, 1])
    host.enforcement.set_sources(replace(GROUPED, pods={"a": frozenset({pod}), "b": frozenset({PEER})}))
    host.enforcement.apply(plan(WHOLE, PORT))
    inside = (Inside(pod, WHOLE.dscp),)
    assert host.ipv4.headers == host.ipv6.headers == Outer((tunnel,), inside), "a job that is marked whole alone"
    assert host.enforcement.marking.tunnel_ports == (4789,)
    present.append(Tunnel("geneve", 6081))
    host.enforcement.reconcile()
    assert host.ipv4.headers == Outer((Tunnel("geneve", 6081), tunnel), inside)
    assert host.enforcement.marking.tunnel_ports == (4789, 6081)
    del present[:]
    tries = host.ipv4.tries
    host.enforcement.reconcile()
    assert host.ipv4.tries == tries, "tunnels that cannot be listed stay as they were"
    host.reach = "link"
    host.enforcement.apply(plan(WHOLE))
    assert host.ipv6.headers == NO_TUNNELS, "no other host is reached by this family"
    assert host.ipv4.headers != NO_TUNNELS
    host.enforcement.set_sources(GROUPED)
    assert host.ipv4.headers == NO_TUNNELS, "the pod is gone"
    assert host.enforcement.marking.tunnel_ports == ()


def test_a_host_promises_nothing_of_tunnels_that_it_cannot_look_into() -> None:
    host = Host()
    host.enforcement = Enforcement(
        host.ipv4, None, Notices(logging.getLogger("test")), tunnels=lambda: [Tunnel("vxlan", 4789)]
    )
    host.enforcement.set_sources(replace(GROUPED, pods={"a": frozenset({bytes([10, 244, 0, 1])})}))
    host.ipv4.can_look = False
    host.enforcement.apply(plan(WHOLE))
    assert host.ipv4.headers.tunnels
    assert host.enforcement.marking.tunnel_ports == ()


def test_marks_that_are_not_of_tcp_come_behind_those_of_tcp() -> None:
    udp = ProtocolMark(job="a", service_class=0, dscp=59, remote="10.0.0.2", remote_port=7000, protocol="udp")
    rocev2 = udp.model_copy(update={"remote_port": 4791})
    everything = udp.model_copy(update={"remote_port": None, "protocol": "any"})
    of_ipv6 = udp.model_copy(update={"remote": "fd00::2"})
    given = plan(PORT).model_copy(update={"protocol_marks": (udp, rocev2, of_ipv6, everything)})
    marks = by_link(given.all_marks, PacketSources()).marks
    assert marks == (PORT, udp, rocev2, everything)
    text = switch_over(marks, 0, jump=True)
    assert [line for line in text.splitlines() if line.startswith("-A TRAINYARD-A ")] == [
        "-A TRAINYARD-A -p tcp --sport 5000 -g TRAINYARD-A0",
        "-A TRAINYARD-A -p udp -d 10.0.0.2 --dport 7000 -g TRAINYARD-A1",
        "-A TRAINYARD-A -p udp -d 10.0.0.2 --dport 4791 -m dscp ! --dscp 48 -g TRAINYARD-A1",
        "-A TRAINYARD-A -d 10.0.0.2 -g TRAINYARD-A1",
    ]
    # Another protocol is another match, and another class is none.
    tcp = Mark(**udp.model_dump(exclude={"protocol"}))
    assert new_classes([udp], [tcp], 0) is None
    later = udp.model_copy(update={"dscp": 51})
    assert new_classes([udp], [later], 0) == "*mangle\n-R TRAINYARD-A0 1 -j DSCP --set-dscp 51\nCOMMIT\n"

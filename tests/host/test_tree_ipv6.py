"""The tree of an interface and packets over IPv6 and in a VLAN, on a real cable: which leaf they leave by."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator

import pytest

from controller.code_points import CLASS_SELECTORS, POOL_2
from host_reporter.nic.interface import Nic
from tests.support.agent.cabled_host import INTERFACE, PEER_IPV6, PORT, cabled_host
from tests.support.host.repaired import sh

RATE = (1e9, POOL_2, 0.01, 0.1)


@pytest.fixture
def nic() -> Iterator[Nic]:
    with cabled_host():
        # From now on the peer's address is resolved.
        socket.create_connection((PEER_IPV6, PORT), 10).close()
        made = Nic(INTERFACE, None)
        yield made
        made.remove()
        assert "htb" not in sh(f"tc qdisc show dev {INTERFACE}")


def packets() -> dict[str, int]:
    """How many packets each leaf has sent."""
    shown = sh(f"tc -s class show dev {INTERFACE}")
    found = re.findall(r"class htb 7472:(\w+) .*?Sent \d+ bytes (\d+) pkt", shown, re.S)
    return {leaf: int(count) for leaf, count in found if leaf not in ("1", "fffe")}


def leaf_of(address: str, traffic_class: int) -> str:
    """The leaf that ten packets with a traffic class leave by."""
    family, option = socket.AF_INET, (socket.IPPROTO_IP, socket.IP_TOS)
    if ":" in address:
        family, option = socket.AF_INET6, (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    before = packets()
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(*option, traffic_class)
        for _ in range(10):
            sender.sendto(b"x", (address, 9))
    after = packets()
    (leaf,) = (leaf for leaf in after if after[leaf] - before[leaf] >= 10)
    return leaf


def ipv4_header(traffic_class: int) -> bytes:
    return struct.pack(">BBHHHBBH8x", 0x45, traffic_class, 60, 0, 0, 64, 17, 0)


def ipv6_header(traffic_class: int) -> bytes:
    return struct.pack(">IHBB32x", 6 << 28 | traffic_class << 20, 40, 17, 64)


def test_packets_over_ipv6_leave_by_the_leaf_of_their_dscp(nic: Nic) -> None:
    nic.apply(*RATE)
    assert nic.changed() == ()
    assert [leaf_of(PEER_IPV6, dscp << 2 | 0b10) for dscp in (*POOL_2.classes, 63, 0, 10)] == [
        "10", "11", "12", "13", "14", "15", "16", "10", "1f", "1f",
    ]  # fmt: skip


def test_neighbour_discovery_leaves_by_the_leaf_of_class_0(nic: Nic) -> None:
    nic.apply(*RATE)
    before = packets()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        # Nobody has this address: its owner is asked for.
        sender.sendto(b"x", ("fd78::99", 9))
        sh("sleep 0.5")
    assert packets()["10"] > before["10"]


def test_packets_of_a_vlan_above_leave_by_the_leaf_of_their_dscp(nic: Nic) -> None:
    """The frames have their tag inside; the kernel classifies those of a VLAN interface by the tag's protocol, too."""
    nic.apply(*RATE)
    for header in (ipv4_header, ipv6_header):
        for dscp, leaf in ((59, "10"), (11, "16"), (63, "10"), (0, "1f")):
            frame = bytes(12) + struct.pack(">HHH", 0x8100, 5, 0x0800 if header is ipv4_header else 0x86DD)
            before = packets()
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
                raw.bind((INTERFACE, 0))
                for _ in range(10):
                    raw.send(frame + header(dscp << 2 | 0b01) + bytes(40))
            after = packets()
            assert [minor for minor in after if after[minor] - before[minor] >= 10] == [leaf]


def test_a_tree_gets_the_dscps_of_another_plan_in_place_and_is_adopted(nic: Nic) -> None:
    nic.apply(*RATE)
    nic.apply(1e9, CLASS_SELECTORS, 0.01, 0.1)
    assert nic.changed() == ()
    assert [leaf_of(PEER_IPV6, dscp << 2) for dscp in (56, 8, 59)] == ["10", "16", "1f"]
    next_agent = Nic(INTERFACE, None)
    next_agent.apply(1e9, CLASS_SELECTORS.first(3), 0.01, 0.1)
    assert next_agent.changed() == ()
    assert [leaf_of(PEER_IPV6, dscp << 2) for dscp in (56, 8)] == ["10", "1f"]


def test_a_filter_for_ipv6_that_somebody_removes_is_put_back(nic: Nic) -> None:
    nic.apply(*RATE)
    sh(f"tc filter del dev {INTERFACE} parent 7472: protocol ipv6 prio 5")
    assert nic.changed()[0].startswith("the filter for DSCP 11 over IPv6, the filter for DSCP 19 over IPv6, ")
    nic.put_back()
    assert nic.changed() == () and leaf_of(PEER_IPV6, 59 << 2) == "10"


def test_a_tree_of_an_agent_before_ipv6_is_completed(nic: Nic) -> None:
    nic.apply(*RATE)
    for pref in (5, 6, 7):
        sh(f"tc filter del dev {INTERFACE} parent 7472: prio {pref}")
    next_agent = Nic(INTERFACE, None)
    next_agent.apply(*RATE)
    assert leaf_of(PEER_IPV6, 59 << 2) == "10"

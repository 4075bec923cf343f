"""Where packets go by the filters of a tree: each filter is tried on the bytes of a packet, like the kernel does."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import CLASS_SELECTORS, POOL_2, CodePoints
from host_reporter.nic.filters import PREFS, Key, of_plan, words
from host_reporter.nic.tree import htb_tree

TYPES = {"ip": 0x0800, "arp": 0x0806, "ipv6": 0x86DD, "802.1Q": 0x8100}
FD = socket.inet_pton(socket.AF_INET6, "fd00::1")


def ipv4(traffic_class: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BBHHHBBH4s4s", 0x45, traffic_class, 20, 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + payload


def ipv6(traffic_class: int, payload: bytes = bytes(20), protocol: int = 6) -> bytes:
    first = 6 << 28 | traffic_class << 20 | 0xABCDE
    return struct.pack(">IHBB16s16s", first, len(payload), protocol, 255, FD, FD) + payload


def arp() -> bytes:
    return struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)


def class_of(packet: bytes, protocol: int, points: CodePoints = POOL_2) -> int | None:
    """The class that a packet goes to by the filters; None: it is other traffic."""
    hits = [
        wanted
        for wanted in of_plan(points)
        if TYPES[PREFS[wanted.pref]] == protocol and all(matches(packet, key) for key in wanted.keys)
    ]
    assert len(hits) <= 1
    return hits[0].service_class if hits else None


def matches(packet: bytes, key: Key) -> bool:
    compared = packet[key.at : key.at + 4]
    return len(compared) == 4 and int.from_bytes(compared, "big") & key.mask == key.value


@given(
    dscp=st.integers(0, 63),
    ecn=st.integers(0, 3),
    tagged=st.booleans(),
    points=st.sampled_from([POOL_2, CLASS_SELECTORS]),
)
def test_both_families_go_by_their_dscp_whatever_their_ecn_bits_and_in_a_vlan(
    dscp: int, ecn: int, tagged: bool, points: CodePoints
) -> None:
    expected = points.served().get(dscp)
    for packet, protocol in ((ipv4(dscp << 2 | ecn), 0x0800), (ipv6(dscp << 2 | ecn), 0x86DD)):
        assert class_of(packet, 0x8100 if tagged else protocol, points) == expected


@pytest.mark.parametrize("tagged", [False, True])
def test_neighbour_discovery_goes_first_and_other_icmpv6_does_not(tagged: bool) -> None:
    for kind in range(256):
        packet = ipv6(0, bytes([kind]) + bytes(7), protocol=58)
        is_first = class_of(packet, 0x8100 if tagged else 0x86DD) == 0
        assert is_first == (kind in range(132, 138)), kind
    # What looks like it in a TCP header is TCP.
    assert class_of(ipv6(0, bytes([135]) + bytes(19)), 0x8100 if tagged else 0x86DD) is None


def test_arp_in_a_vlan_goes_first_and_unknown_protocols_in_one_do_not() -> None:
    assert class_of(arp(), 0x8100) == 0
    assert class_of(bytes(46), 0x8100) is None
    assert class_of(struct.pack(">HH", 1, 0x0801) + bytes(24), 0x8100) is None


def test_each_filter_has_a_name_and_a_place_of_its_own() -> None:
    wanted = list(of_plan(POOL_2))
    names = [words(each.keys) for each in wanted]
    assert len(set(names)) == len(wanted) == len({each[:2] for each in wanted}) and None not in names
    assert all(1 <= each.number <= 0xFFF for each in wanted)
    assert {"DSCP 59", "DSCP 59 over IPv6", "DSCP 59 in a VLAN", "DSCP 59 over IPv6 in a VLAN"} <= set(names)
    assert words((Key(0x00EC0000, 0x00FF0000, 0),)) is None and words((Key(0, 0, 0),)) is None


def test_the_lines_of_a_new_tree_have_all_filters() -> None:
    lines = htb_tree("eth0", 1e9, POOL_2.first(2), 0.01, 0.1)
    text = "\n".join(lines)
    assert (
        "filter replace dev eth0 parent 7472: protocol ipv6 prio 5 handle ::3b u32 "
        "match u32 0x0ec00000 0x0fc00000 at 0 flowid 7472:10\n" in text
    )
    assert sum(line.startswith("filter ") for line in lines) == len(list(of_plan(POOL_2.first(2)))) + 1

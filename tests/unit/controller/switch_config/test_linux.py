"""The Linux router: its filters compared with real headers of both families, its tree with the one of a host."""

from __future__ import annotations

import re
import struct
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple

import pytest

from controller.code_points import POOL_2
from host_reporter.nic.tree import htb_tree
from tests.support.controller.switch_configs import SETTINGS, commands, plan

ARP = bytes.fromhex("0001080006040001") + bytes(20)
OTHER = 0x1F


class Filter(NamedTuple):
    preference: int
    protocol: str
    matches: tuple[tuple[int, int, int], ...]
    leaf: int


@cache
def filters(settings: str) -> list[Filter]:
    """The filters of the first port, in the kernel's order, without the one that goes by the mark."""
    found = []
    for line in commands(settings, "linux"):
        shape = r"filter add dev eth1 parent 7475: protocol (\S+) prio (\d+) u32 (.*) flowid 7475:(\w+)"
        if match := re.fullmatch(shape, line):
            keys = re.findall(r"match u32 (\w+) (\w+)(?: at (\d+))?", match[3])
            matches = tuple((int(value, 16), int(mask, 16), int(at or 0)) for value, mask, at in keys)
            found.append(Filter(int(match[2]), match[1], matches, int(match[4], 16)))
    return sorted(found, key=lambda each: each.preference)


def leaf(settings: str, protocol: str, header: bytes) -> int:
    """The leaf in which a packet waits, as the kernel compares big-endian words behind the network header."""
    for each in filters(settings):
        if each.protocol == protocol and all(
            struct.unpack_from(">I", header, at)[0] & mask == value for value, mask, at in each.matches
        ):
            return each.leaf
    return OTHER


def ipv4(dscp: int, ecn: int = 0) -> bytes:
    addresses = ip_address("10.0.0.1").packed + ip_address("10.0.0.2").packed
    return struct.pack(">BBHHHBBH", 0x45, dscp << 2 | ecn, 60, 0, 0, 64, 6, 0) + addresses + bytes(40)


def ipv6(dscp: int, ecn: int = 0, following: int = 6, payload: bytes = bytes(40)) -> bytes:
    addresses = ip_address("fd00::1").packed + ip_address("fd00::2").packed
    first = 6 << 28 | (dscp << 2 | ecn) << 20 | 0xFFFFF
    return struct.pack(">IHBB", first, len(payload), following, 64) + addresses + payload


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("ecn", [0, 1, 2, 3])
def test_each_dscp_of_both_families_waits_in_its_queue(settings: str, ecn: int) -> None:
    queues = plan(settings, "linux").queues
    leaves = {dscp: 0x10 + place for place, queue in enumerate(queues) for dscp in queue.dscps}
    for dscp in range(64):
        for protocol, header in (("ip", ipv4(dscp, ecn)), ("ipv6", ipv6(dscp, ecn))):
            assert leaf(settings, protocol, header) == leaves.get(dscp, OTHER)
            assert leaf(settings, "802.1Q", header) == leaves.get(dscp, OTHER), "in a VLAN"


@pytest.mark.parametrize("protocol", ["arp", "802.1Q"])
def test_arp_waits_with_class_0(protocol: str) -> None:
    assert leaf("pool-2", protocol, ARP) == 0x10


@pytest.mark.parametrize(
    ("kind", "is_discovery"), [(128, False), (129, False), *((each, True) for each in range(133, 138)), (138, False)]
)
@pytest.mark.parametrize("protocol", ["ipv6", "802.1Q"])
def test_neighbour_discovery_waits_with_class_0_and_a_ping_does_not(
    protocol: str, kind: int, is_discovery: bool
) -> None:
    header = ipv6(0, following=58, payload=bytes([kind]) + bytes(39))
    assert leaf("pool-2", protocol, header) == (0x10 if is_discovery else OTHER)


def classes(lines: list[str], handle: str) -> dict[int, tuple[str, ...]]:
    """Rate, ceiling and priority of each leaf."""
    shape = rf"classid {handle}:(\w+) htb rate (\w+) ceil (\w+) prio (\d)"
    return {int(found[1], 16): found.groups()[1:] for line in lines if (found := re.search(shape, line))}


def test_the_tree_orders_like_the_one_of_a_host() -> None:
    of_host = classes(htb_tree("eth1", 10e9, POOL_2, 0.01, 0.1), "7472")
    of_router = classes([line for line in commands("pool-2", "linux") if "dev eth1 " in line], "7475")
    assert len(of_host) == 8
    assert of_router == of_host


def test_only_ports_that_are_not_believed_get_a_mark_and_it_goes_before_all_filters() -> None:
    lines = commands("dcb", "linux")
    assert [line for line in lines if "skbedit" in line] == [
        "tc filter add dev eth2 parent ffff:fff2 protocol all pref 29813 matchall action skbedit mark 0x7475"
    ]
    for port in ("eth1", "eth2", "eth31"):
        first = next(line for line in lines if line.startswith(f"filter add dev {port} "))
        assert first.endswith("protocol all prio 1 handle 0x7475 fw flowid 7475:1f")

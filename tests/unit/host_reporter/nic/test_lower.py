"""Which interfaces get a tree: VLANs and bonds hand their packets on, and what cannot be ordered is said."""

from __future__ import annotations

import struct

import pytest

from host_reporter.nic import netdev_list
from host_reporter.nic.errors import NicError
from host_reporter.nic.lower import Place, places
from host_reporter.nic.netdev import Netdev
from tests.unit.host_reporter.nic.test_state import attribute

ETH0, ETH1 = Netdev(2, "eth0", 1, master=5), Netdev(3, "eth1", 1, master=5)
BOND = Netdev(5, "bond0", 1, kind="bond", bond_mode=4)
VLAN = Netdev(6, "bond0.7", 1, kind="vlan", lower=5)


def found(name: str, *netdevs: Netdev) -> tuple[Place, ...]:
    return places({netdev.ifindex: netdev for netdev in netdevs}, name)


def test_an_interface_of_its_own_gets_its_tree() -> None:
    for netdev in (Netdev(2, "eth0", 1), Netdev(2, "eth0", 1, kind="veth"), Netdev(2, "br0", 1, kind="bridge")):
        assert found(netdev.name, netdev) == (Place(netdev.name),)
    # A port of a bond may be named by itself.
    assert found("eth1", ETH0, ETH1, BOND) == (Place("eth1"),)


def test_a_vlan_is_ordered_at_the_interface_below_it() -> None:
    eth2 = Netdev(4, "eth2", 1)
    assert found("eth2.7", eth2, Netdev(7, "eth2.7", 1, kind="vlan", lower=4)) == (Place("eth2"),)
    inner = Netdev(8, "eth2.7.9", 1, kind="vlan", lower=7)
    assert found("eth2.7.9", eth2, Netdev(7, "eth2.7", 1, kind="vlan", lower=4), inner) == (Place("eth2"),)


@pytest.mark.parametrize(("mode", "share"), [(0, 0.5), (1, 1.0), (2, 0.5), (3, 1.0), (4, 0.5), (None, 0.5)])
def test_each_port_of_a_bond_is_ordered_with_what_it_carries_at_most(mode: int | None, share: float) -> None:
    known = (ETH0, ETH1, BOND._replace(bond_mode=mode), VLAN)
    assert found("bond0", *known) == found("bond0.7", *known) == (Place("eth0", share), Place("eth1", share))


@pytest.mark.parametrize(
    ("name", "netdevs", "words"),
    [
        ("eth9", (ETH0,), "there is no interface eth9"),
        ("bond0", (BOND,), "bond0 is a bond without ports"),
        ("v", (Netdev(2, "v", 1, kind="vlan"),), "v is a VLAN on an interface of another network namespace"),
        ("team0", (Netdev(2, "team0", 1, kind="team"),), "team0 is a team, .*: name its ports"),
        ("a", (Netdev(2, "a", 1, kind="vlan", lower=3), Netdev(3, "b", 1, kind="vlan", lower=2)), "a lies on itself"),
    ],
)
def test_what_cannot_be_ordered_is_said(name: str, netdevs: tuple[Netdev, ...], words: str) -> None:
    with pytest.raises(NicError, match=words):
        found(name, *netdevs)


def test_the_mode_of_a_bond_is_in_the_kernels_description() -> None:
    def link(kind: bytes, data: bytes) -> Netdev | None:
        info = attribute(18, attribute(1, kind + b"\0") + attribute(2, data))
        counters = attribute(23, bytes(32))
        return netdev_list.link(struct.pack("=BxHiII", 0, 1, 5, 0, 0) + attribute(3, b"bond0\0") + info + counters)

    bond = link(b"bond", attribute(1, b"\4"))
    assert bond is not None and (bond.kind, bond.bond_mode) == ("bond", 4)
    assert (unknown := link(b"bond", b"")) is not None and unknown.bond_mode is None
    assert (vlan := link(b"vlan", attribute(1, b"\7\0"))) is not None and vlan.bond_mode is None

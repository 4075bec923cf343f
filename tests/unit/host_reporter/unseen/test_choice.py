"""Which interfaces are counted: no byte twice, and none of an interface that leads nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from host_reporter.nic.netdev import Count, Netdev, Network
from host_reporter.unseen.choice import carrier, choose
from host_reporter.unseen.counts import Port
from host_reporter.unseen.sample import sample

LO = Netdev(1, "lo", 772)
ETH0, ETH1 = Netdev(2, "eth0", 1), Netdev(3, "eth1", 1)
A, B = bytes([10, 0, 0, 1]), bytes([10, 1, 0, 1])


def network(*netdevs: Netdev, addresses: Iterable[tuple[bytes, int]]) -> Network:
    return Network({netdev.ifindex: netdev for netdev in (LO, *netdevs)}, dict(addresses))


def chosen(known: Network, ordered: set[bytes], named: str | None = None) -> tuple[set[str], set[str]]:
    found = choose(known, ordered, () if named is None else (named,))
    return {known.netdevs[at].name for at in found.ordered}, {known.netdevs[at].name for at in found.others}


def test_the_interface_of_the_ordered_address_and_the_physical_ones_beside_it() -> None:
    known = network(ETH0, ETH1, Netdev(4, "veth1", 1, "veth"), addresses=[(A, 2), (B, 3)])
    assert chosen(known, {A}) == ({"eth0"}, {"eth1"})
    assert chosen(known, {A, B}) == ({"eth0", "eth1"}, set())
    assert chosen(known, set(), "eth1") == ({"eth1"}, {"eth0"})


def test_a_vlan_is_counted_itself_or_by_the_interface_below_it() -> None:
    known = network(ETH0, Netdev(4, "eth0.7", 1, "vlan", lower=2), addresses=[(A, 2), (B, 4)])
    assert chosen(known, {B}) == ({"eth0.7"}, set())
    assert chosen(known, {A, B}) == ({"eth0"}, set())
    assert carrier(known, choose(known, {A}, ()), 4) == 2, "sockets of the VLAN explain bytes of eth0"


def test_a_bond_is_counted_and_its_parts_are_not() -> None:
    parts = (Netdev(2, "eth0", 1, master=9), Netdev(3, "eth1", 1, master=9))
    bond, vlan = Netdev(9, "bond0", 1, "bond"), Netdev(10, "bond0.7", 1, "vlan", lower=9)
    known = network(*parts, bond, vlan, Netdev(11, "eth2", 1), addresses=[(A, 9), (B, 10)])
    assert chosen(known, {A}) == ({"bond0"}, {"eth2"})
    assert chosen(known, {B}) == ({"bond0.7"}, {"eth2"})
    assert chosen(known, {A}, "eth0") == ({"bond0"}, {"eth2"})


def test_of_a_bridge_the_port_that_leads_out_is_counted() -> None:
    bridge, inside = Netdev(9, "br0", 1, "bridge"), Netdev(10, "veth1", 1, "veth", master=9)
    known = network(Netdev(2, "eth0", 1, master=9), bridge, inside, addresses=[(A, 9)])
    assert chosen(known, {A}) == ({"eth0"}, set())
    assert carrier(known, choose(known, {A}, ()), 9) == 2


def test_an_address_of_the_loopback_is_at_no_interface() -> None:
    known = network(ETH0, Netdev(4, "dummy0", 1, "dummy"), addresses=[(A, 1), (B, 4)])
    assert choose(known, {A, B}, ()).ordered == frozenset()


def test_interfaces_that_lie_on_each_other_end_no_loop() -> None:
    known = network(
        Netdev(4, "a", 1, "macvlan", lower=5), Netdev(5, "b", 1, "macvlan", lower=4), addresses=[(A, 4), (B, 5)]
    )
    assert choose(known, {A}, ()).ordered == {4}


def test_a_sample_has_sockets_at_the_interface_of_their_address() -> None:
    eth0 = ETH0._replace(bytes=Count(100, 10), packets=Count(2, 1))
    ib0 = Netdev(5, "ib0", 32, bytes=Count(40, 4), packets=Count(1, 1))
    known = network(eth0, ib0, addresses=[(A, 2)])
    ports = [
        Port("mlx5_0:1", Count(900, 90), ("eth0",)),
        Port("mlx5_1:1", Count(80, 8), ("ib0",), has_their_bytes=True),
    ]
    own = {A: Count(70, 7), B: Count(3, 0)}
    made = sample(5.0, known, choose(known, {A}, ()), ports, own=own, others=[Count(1, 2)])
    assert made.netdevs["eth0"] == (Count(100, 10), Count(2, 1), Count(70, 7))
    assert made.netdevs["ib0"].explained == (0, 0)
    assert made.elsewhere == (4, 2)
    assert made.ports["mlx5_0:1"] == (Count(900, 90), Count(), Count()), "RoCE goes past the interface"
    assert made.ports["mlx5_1:1"] == (Count(80, 8), Count(1, 1), Count(40, 4))

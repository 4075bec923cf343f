"""Where the tree of an interface belongs: on what carries its packets to the cable. Pure.

A VLAN hands its packets to the interface that it lies on, and a bond to its ports. They wait there, so the order must
hold there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from host_reporter.nic.errors import NicError
from host_reporter.nic.netdev import Netdev

_VLAN, _BOND, _TEAM = "vlan", "bond", "team"
_ONE_CARRIES_ALL = frozenset({1, 3})
"""The modes active-backup and broadcast of linux/if_bonding.h: what a bond sends may leave whole by each port."""


class Place(NamedTuple):
    """An interface that gets a tree, and how much of the named interface's rate it carries at most."""

    interface: str
    share: float = 1.0


def places(netdevs: Mapping[int, Netdev], name: str) -> tuple[Place, ...]:
    """Returns the interfaces that carry what ``name`` sends; itself, where that is it. Raises NicError."""
    named = next((netdev for netdev in netdevs.values() if netdev.name == name), None)
    if named is None:
        raise NicError(f"there is no interface {name}")
    return tuple(_below(netdevs, named, 1.0, frozenset()))


def _below(netdevs: Mapping[int, Netdev], netdev: Netdev, share: float, above: frozenset[int]) -> list[Place]:
    if netdev.ifindex in above:
        raise NicError(f"{netdev.name} lies on itself")
    above |= {netdev.ifindex}
    if netdev.kind == _TEAM:
        raise NicError(f"{netdev.name} is a team, which does not tell how it shares its ports: name its ports")
    if netdev.kind == _VLAN:
        lower = netdevs.get(netdev.lower) if netdev.lower is not None else None
        if lower is None:
            raise NicError(
                f"{netdev.name} is a VLAN on an interface of another network namespace: run the agent there, and name "
                "that interface"
            )
        return _below(netdevs, lower, share, above)
    if netdev.kind != _BOND:
        return [Place(netdev.name, share)]
    ports = sorted(port for port, part in netdevs.items() if part.master == netdev.ifindex)
    if not ports:
        raise NicError(f"{netdev.name} is a bond without ports")
    each = share if netdev.bond_mode in _ONE_CARRIES_ALL else share / len(ports)
    return [place for port in ports for place in _below(netdevs, netdevs[port], each, above)]

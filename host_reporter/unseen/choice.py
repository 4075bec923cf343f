"""Which network interfaces are compared with the sockets, so that no byte is counted twice. Pure.

A VLAN's bytes are also those of the interface below it, and a bond's those of its parts. A bridge counts only what the
host itself sends through it, so its ports are counted in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from host_reporter.nic.netdev import Netdev, Network

_ETHERNET, _INFINIBAND, _LOOPBACK = 1, 32, 772
"""Link types of linux/if_arp.h."""
_BRIDGE, _DUMMY = "bridge", "dummy"
_BRIDGED = ("", "bond", "team", "vlan")
"""Kinds of a bridge's ports that lead out of the host; others lead to its containers and virtual machines."""


class Choice(NamedTuple):
    """The interfaces to look at, by index. ``ordered``: those that the controller orders; the others explain bytes."""

    ordered: frozenset[int]
    others: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        """All that are looked at."""
        return self.ordered | self.others


def choose(network: Network, ordered_addresses: Collection[bytes], named: Collection[str]) -> Choice:
    """Returns the interfaces with an ordered address or one of the names ``named``, and the physical ones beside them.

    Those beside them count because a socket's bytes may leave by another interface than the one with its address.
    """
    netdevs = network.netdevs
    wanted = {index for address, index in network.addresses.items() if address in ordered_addresses}
    wanted |= {index for index, netdev in netdevs.items() if netdev.name in named}
    ends = {end for index in wanted if index in netdevs for end in _ways_out(netdevs, index)}
    ordered = frozenset(index for index in ends if not _lies_on(netdevs, index, ends))
    counted = ordered.union(*(_below(netdevs, index) for index in ordered))
    others = {
        index
        for index, netdev in netdevs.items()
        if not netdev.kind and netdev.link_type in (_ETHERNET, _INFINIBAND) and index not in counted
    }
    return Choice(ordered, frozenset(others))


def carrier(network: Network, choice: Choice, index: int) -> int | None:
    """Returns the interface of ``choice`` that carries the bytes of sockets with an address of ``index``.

    None: none of them does, or nobody knows which.
    """
    if index in choice.all:
        return index
    below = _below(network.netdevs, index) & choice.all
    return next(iter(below)) if len(below) == 1 else None


def _ways_out(netdevs: Mapping[int, Netdev], index: int) -> Iterator[int]:
    """Yields an interface, or the ports of a bridge that lead out of the host. The loopback leads nowhere."""
    netdev = netdevs[index]
    if netdev.link_type == _LOOPBACK or netdev.kind == _DUMMY:
        return
    ports = [port for port, part in netdevs.items() if part.master == index and part.kind in _BRIDGED]
    yield from ports if netdev.kind == _BRIDGE and ports else [index]


def _lies_on(netdevs: Mapping[int, Netdev], index: int, ends: Collection[int]) -> bool:
    """Returns whether an interface's bytes are counted at another of ``ends``: below it, or the bond that it is in."""
    below = netdevs[index].lower
    seen = {index}
    while below is not None and below in netdevs and below not in seen:
        if below in ends:
            return True
        seen.add(below)
        below = netdevs[below].lower
    return netdevs[index].master in ends


def _below(netdevs: Mapping[int, Netdev], index: int) -> set[int]:
    """Returns all interfaces that lie below one: what a VLAN lies on, and the parts of a bond or bridge."""
    found: set[int] = set()
    waiting = [index]
    while waiting:
        at = waiting.pop()
        lower = netdevs[at].lower
        parts = [part for part, netdev in netdevs.items() if netdev.master == at]
        new = {each for each in (lower, *parts) if each is not None and each in netdevs} - found - {index}
        found |= new
        waiting += new
    return found

"""What interfaces and sockets have carried, as values. All counts only grow while their interface is there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from host_reporter.nic.netdev import Count

SENT, RECEIVED = 0, 1
"""The places of the two directions in a Count."""


class Port(NamedTuple):
    """A port of an RDMA device, such as mlx5_0:1, and the bytes that went through it.

    ``netdevs`` are the names of the device's network interfaces. ``has_their_bytes``: whether what these carry is in
    ``bytes``, too: so it is with IP over InfiniBand, and not with RoCE.
    """

    name: str
    bytes: Count
    netdevs: tuple[str, ...] = ()
    has_their_bytes: bool = False


class Carried(NamedTuple):
    """What a network interface or an RDMA port has carried.

    ``explained`` are payload bytes that account for a part of ``bytes``: of an interface those of the TCP sockets with
    an address of it, of an InfiniBand port those of the network interfaces above it. ``packets`` are those that have
    headers beside this payload.
    """

    bytes: Count
    packets: Count = Count()
    explained: Count = Count()


class Sample(NamedTuple):
    """All counts at a moment, ``time`` by a clock that nobody sets.

    ``elsewhere`` is what TCP sockets have carried whose address is of no interface here, such as those of containers.
    """

    time: float
    netdevs: Mapping[str, Carried] = MappingProxyType({})
    elsewhere: Count = Count()
    ports: Mapping[str, Carried] = MappingProxyType({})


class Moment(NamedTuple):
    """One listing of the sockets, with the interfaces' counts from right before it (``early``) and after (``late``).

    From ``late`` of one moment to ``early`` of another the interfaces are counted for no longer than the sockets, so
    that a program which is kept waiting between the two takes no TCP for something else.
    """

    early: Sample
    late: Sample

"""The switches and the links between them as a graph, and the paths through it. Pure.

A switch is its datapath id; a link joins a port of one switch to a port of another. The graph contains no hosts: a path
leads to the switch where the destination is attached. Rules forward by ``Paths``. The ordering gets the links that each
pair of hosts crosses from the same paths (``routes``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol
from zlib import crc32

import networkx as nx

from controller.memo import Memo
from controller.model import Direction, Host, Port, Routes
from controller.rules.families import addresses

Places = tuple[tuple[str, int, str], ...]
"""Hosts by name, each with its switch and one of its addresses."""


class LinkLike(Protocol):
    """A link between two switches: datapath ids ``a`` and ``b``, and the port numbers at either end."""

    @property
    def a(self) -> int:
        """Returns the datapath id of one end."""

    @property
    def a_port(self) -> int:
        """Returns the port number at ``a``."""

    @property
    def b(self) -> int:
        """Returns the datapath id of the other end."""

    @property
    def b_port(self) -> int:
        """Returns the port number at ``b``."""


class RatedLink(LinkLike, Protocol):
    """A link whose rate may be known; it is the same in both directions."""

    @property
    def rate_bps(self) -> float | None:
        """Returns the rate in bit/s, or None where it is not known."""


class Link(NamedTuple):
    """A link between two switches, as a hashable value."""

    a: int
    a_port: int
    b: int
    b_port: int


def as_links(links: Iterable[LinkLike]) -> tuple[Link, ...]:
    """Returns links as values: each with its lower end first, sorted, without repetition."""
    unique: set[Link] = set()
    for link in links:
        low, high = sorted(((link.a, link.a_port), (link.b, link.b_port)))
        unique.add(Link(*low, *high))
    return tuple(sorted(unique))


def inner_ports(links: Iterable[LinkLike], switch: int) -> frozenset[int]:
    """Returns the ports of ``switch`` that lead to other switches."""
    ports: set[int] = set()
    for link in links:
        if link.a == switch:
            ports.add(link.a_port)
        if link.b == switch:
            ports.add(link.b_port)
    return frozenset(ports)


class Fabric:
    """Shortest paths over the links. Parallel links between two switches are told apart by their ports."""

    def __init__(self, links: Iterable[LinkLike]) -> None:
        self._graph: nx.Graph[int] = nx.Graph()
        self._ports: dict[tuple[int, int], list[int]] = {}
        self.links = as_links(links)
        self.other_end: dict[tuple[int, int], int] = {}
        """The datapath id that each port leads to, by the port's own datapath id and number."""
        for link in self.links:
            self._graph.add_edge(link.a, link.b)
            for here, port, there in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
                self._ports.setdefault((here, there), []).append(port)
                self.other_end[here, port] = there

    def has_unique_paths(self) -> bool:
        """Returns whether there is never more than one path between two switches."""
        return not self.links or (nx.is_forest(self._graph) and len(self.links) == self._graph.number_of_edges())

    def next_hops(self, destination: int, preferred: Collection[int]) -> dict[int, tuple[int, ...]]:
        """Returns, for every switch with a path to ``destination``, the ports of its shortest paths, sorted.

        Paths stay on ``preferred`` switches where they can; a switch that has no such path takes the shortest path of
        all. No loop can form. A packet on a preferred path stays on it and gets nearer with every hop. Any other packet
        gets nearer in the whole graph until it reaches a preferred path.
        """
        if destination not in self._graph:
            return {}
        ports = self._next_hops(self._graph, destination)
        if destination in preferred:
            ports |= self._next_hops(self._graph.subgraph(preferred), destination)
        return ports

    def _next_hops(self, graph: nx.Graph[int], destination: int) -> dict[int, tuple[int, ...]]:
        distance: dict[int, int] = nx.single_source_shortest_path_length(graph, destination)
        return {
            switch: tuple(
                sorted(
                    port
                    for neighbour in graph.neighbors(switch)
                    if distance[neighbour] == length - 1
                    for port in self._ports[switch, neighbour]
                )
            )
            for switch, length in distance.items()
            if switch != destination
        }


def pick(ports: tuple[int, ...], address: str) -> int:
    """Returns one of several equally good ports. It depends only on ``address``, so that addresses share the spines."""
    return ports[crc32(address.encode()) % len(ports)]


class Paths:
    """The path that packets to each address take; ``Fabric.next_hops`` explains ``preferred``."""

    def __init__(self, fabric: Fabric, preferred: Collection[int]) -> None:
        self._fabric = fabric
        self._preferred = frozenset(preferred)
        self._next_hops: dict[int, dict[int, tuple[int, ...]]] = {}

    def port(self, switch: int, home: int, address: str) -> int | None:
        """Returns the port by which packets to ``address`` at switch ``home`` leave ``switch``; None without a path."""
        ports = self._next_hops.get(home)
        if ports is None:
            ports = self._next_hops[home] = self._fabric.next_hops(home, self._preferred)
        return pick(ports[switch], address) if switch in ports else None

    def crossed(self, switch: int, home: int, address: str) -> list[tuple[int, int]]:
        """Returns the links from ``switch`` to ``home``, each as its sending switch and port; empty without a path."""
        links: list[tuple[int, int]] = []
        while switch != home:
            port = self.port(switch, home, address)
            if port is None:
                return []
            links.append((switch, port))
            switch = self._fabric.other_end[switch, port]
        return links


@lru_cache(maxsize=16)
def paths(links: tuple[Link, ...], preferred: frozenset[int]) -> Paths:
    """Returns the paths over ``links``: the same object for the same links, so that they are computed once."""
    return Paths(Fabric(links), preferred)


def routes(
    hosts: Mapping[str, Host], links: Iterable[RatedLink], preferred: Collection[int], *, computed: bool
) -> Routes | None:
    """Returns the links between switches whose rates are known, and the paths over them; None without such a link.

    ``computed`` says that the switches forward by ``Paths``; ``preferred`` are the switches that are ready. Where they
    forward by their own learning, the path is known only where there is no other, and None is returned elsewhere. The
    result is the same object as long as none of the arguments changes. ``hosts`` must not change: where they are is
    remembered by the identity of the mapping.
    """
    all_links = tuple(links)
    rates: dict[tuple[int, int], float] = {}
    for link in all_links:
        if link.rate_bps is not None:
            rates |= dict.fromkeys(((link.a, link.a_port), (link.b, link.b_port)), link.rate_bps)
    if not rates:
        return None
    places = _places_of.get(hosts, lambda: _places(hosts))
    return _routes(places, as_links(all_links), tuple(sorted(rates.items())), frozenset(preferred), computed)


_places_of: Memo[Mapping[str, Host], Places] = Memo(16)


def _places(hosts: Mapping[str, Host]) -> Places:
    """Returns where each host is that has an address, and the address by which packets to it choose their path."""
    known = ((name, host.switch, addresses(host)) for name, host in hosts.items())
    return tuple((name, switch, found[0]) for name, switch, found in known if switch is not None and found)


@lru_cache(maxsize=16)
def _routes(
    places: Places,
    links: tuple[Link, ...],
    rates: tuple[tuple[tuple[int, int], float], ...],
    preferred: frozenset[int],
    computed: bool,
) -> Routes | None:
    if not computed and not Fabric(links).has_unique_paths():
        return None
    shortest = paths(links, preferred)
    number = {end: i for i, (end, _) in enumerate(rates)}
    at = {name: (switch, address) for name, switch, address in places}
    remembered: dict[tuple[int, str], tuple[int, ...]] = {}

    def crossed(src: str, dst: str) -> tuple[int, ...]:
        if src not in at or dst not in at:
            return ()
        # A path depends only on the switch of its source, so hosts of one switch share an entry.
        key = (at[src][0], dst)
        if key not in remembered:
            remembered[key] = tuple(number[end] for end in shortest.crossed(key[0], *at[dst]) if end in number)
        return remembered[key]

    def site(host: str) -> int | None:
        return at[host][0] if host in at else None

    named = (Port(f"switch {switch:#x} port {port}", Direction.EGRESS) for (switch, port), _ in rates)
    return Routes(tuple(zip(named, (rate for _, rate in rates), strict=True)), crossed, site)

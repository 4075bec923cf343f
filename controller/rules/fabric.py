"""The switches and the links between them as a graph, and the paths through it. Pure.

A switch is its datapath id; a link joins a port of one switch to a port of another. Hosts are no part of the
graph: a path leads to the switch where the destination is attached. Rules forward by ``Paths``; by the same paths the
ordering knows which links each pair of hosts crosses (``routes``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol
from zlib import crc32

import networkx as nx

from controller.model import Direction, Host, Port, Routes


class LinkLike(Protocol):
    """A link between two switches: datapath ids ``a`` and ``b``, and the port numbers at either end."""

    @property
    def a(self) -> int:
        """Datapath id of one end."""

    @property
    def a_port(self) -> int:
        """Port number at ``a``."""

    @property
    def b(self) -> int:
        """Datapath id of the other end."""

    @property
    def b_port(self) -> int:
        """Port number at ``b``."""


class RatedLink(LinkLike, Protocol):
    """A link whose rate each way may be known."""

    @property
    def rate_bps(self) -> float | None:
        """Bit/s; None: not known."""


class Link(NamedTuple):
    """A link between two switches, as a hashable value."""

    a: int
    a_port: int
    b: int
    b_port: int


def as_links(links: Iterable[LinkLike]) -> tuple[Link, ...]:
    """Any description of links as values, each with its lower end first, sorted, without repetition."""
    unique: set[Link] = set()
    for link in links:
        low, high = sorted(((link.a, link.a_port), (link.b, link.b_port)))
        unique.add(Link(*low, *high))
    return tuple(sorted(unique))


def inner_ports(links: Iterable[LinkLike], switch: int) -> frozenset[int]:
    """The ports of ``switch`` that lead to other switches."""
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
        """The switch that a port of another leads to."""
        for link in self.links:
            self._graph.add_edge(link.a, link.b)
            for here, port, there in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
                self._ports.setdefault((here, there), []).append(port)
                self.other_end[here, port] = there

    def has_one_way(self) -> bool:
        """Whether there is never more than one path between two switches, whoever chooses it."""
        return not self.links or (nx.is_forest(self._graph) and len(self.links) == self._graph.number_of_edges())

    def ways(self, destination: int, preferred: Collection[int]) -> dict[int, tuple[int, ...]]:
        """For every switch with a path to ``destination``: the ports by which the shortest ways leave it, sorted.

        Paths stay on ``preferred`` switches where they can; a switch that has no such path takes the shortest
        one over all. No loop can form: a packet on a preferred path stays on it and gets nearer with every hop, any
        other gets nearer in the whole graph until it meets one.
        """
        if destination not in self._graph:
            return {}
        ways = self._toward(self._graph, destination)
        if destination in preferred:
            ways |= self._toward(self._graph.subgraph(preferred), destination)
        return ways

    def _toward(self, graph: nx.Graph[int], destination: int) -> dict[int, tuple[int, ...]]:
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


def pick(ways: tuple[int, ...], spread: str) -> int:
    """One of equally good ports, always the same for one ``spread`` (an address), so that destinations share spines."""
    return ways[crc32(spread.encode()) % len(ways)]


class Paths:
    """The one path that packets to an address take; see ``Fabric.ways`` for ``preferred``."""

    def __init__(self, fabric: Fabric, preferred: Collection[int]) -> None:
        self._fabric = fabric
        self._preferred = frozenset(preferred)
        self._ways: dict[int, dict[int, tuple[int, ...]]] = {}

    def port(self, switch: int, home: int, address: str) -> int | None:
        """The port by which packets to ``address`` at ``home`` leave another switch; None: there is no path."""
        ways = self._ways.get(home)
        if ways is None:
            ways = self._ways[home] = self._fabric.ways(home, self._preferred)
        return pick(ways[switch], address) if switch in ways else None

    def crossed(self, switch: int, home: int, address: str) -> list[tuple[int, int]]:
        """The links from ``switch`` to ``home`` as the switch and port that each is left by; empty without a path."""
        found: list[tuple[int, int]] = []
        while switch != home:
            port = self.port(switch, home, address)
            if port is None:
                return []
            found.append((switch, port))
            switch = self._fabric.other_end[switch, port]
        return found


@lru_cache(maxsize=16)
def paths(links: tuple[Link, ...], preferred: frozenset[int]) -> Paths:
    """The paths over ``links``: the same object for the same links, so that rules and routes work them out once."""
    return Paths(Fabric(links), preferred)


def routes(
    hosts: Mapping[str, Host], links: Iterable[RatedLink], preferred: Collection[int], *, computed: bool
) -> Routes | None:
    """What the ordering knows of the links between switches; None where it knows none with a rate.

    ``computed``: the switches forward by ``Paths``, those ready being ``preferred``. Where they forward by their own
    learning, the path is known only where there is no other. The same object while nothing of this has changed.
    """
    given = tuple(links)
    rates: dict[tuple[int, int], float] = {}
    for link in given:
        if link.rate_bps is not None:
            rates |= dict.fromkeys(((link.a, link.a_port), (link.b, link.b_port)), link.rate_bps)
    places = tuple(
        (name, host.switch, host.address)
        for name, host in hosts.items()
        if host.switch is not None and host.address is not None
    )
    if not rates:
        return None
    return _routes(places, as_links(given), tuple(sorted(rates.items())), frozenset(preferred), computed)


@lru_cache(maxsize=16)
def _routes(
    places: tuple[tuple[str, int, str], ...],
    links: tuple[Link, ...],
    rates: tuple[tuple[tuple[int, int], float], ...],
    preferred: frozenset[int],
    computed: bool,
) -> Routes | None:
    if not computed and not Fabric(links).has_one_way():
        return None
    way = paths(links, preferred)
    number = {end: i for i, (end, _) in enumerate(rates)}
    at = {name: (switch, address) for name, switch, address in places}
    known: dict[tuple[int, str], tuple[int, ...]] = {}

    def crossed(src: str, dst: str) -> tuple[int, ...]:
        if src not in at or dst not in at:
            return ()
        # Where a path begins is all that the source says of it.
        key = (at[src][0], dst)
        if key not in known:
            known[key] = tuple(number[end] for end in way.crossed(key[0], *at[dst]) if end in number)
        return known[key]

    def site(host: str) -> int | None:
        return at[host][0] if host in at else None

    named = (Port(f"switch {switch:#x} port {port}", Direction.EGRESS) for (switch, port), _ in rates)
    return Routes(tuple(zip(named, (rate for _, rate in rates), strict=True)), crossed, site)

"""The switches and the links between them as a graph, and the paths through it. Pure.

A switch is its datapath id; a link joins a port of one switch to a port of another. Hosts are no part of the
graph: a path leads to the switch where the destination is attached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol
from zlib import crc32

import networkx as nx


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


class Link(NamedTuple):
    """A link between two switches, as a hashable value."""

    a: int
    a_port: int
    b: int
    b_port: int


def as_links(links: Iterable[LinkLike]) -> tuple[Link, ...]:
    """Any description of links as values, each with its lower end first, sorted, without repetition."""
    found: set[Link] = set()
    for link in links:
        low, high = sorted(((link.a, link.a_port), (link.b, link.b_port)))
        found.add(Link(*low, *high))
    return tuple(sorted(found))


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
        for link in as_links(links):
            self._graph.add_edge(link.a, link.b)
            self._ports.setdefault((link.a, link.b), []).append(link.a_port)
            self._ports.setdefault((link.b, link.a), []).append(link.b_port)

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

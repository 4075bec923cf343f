"""Where flows go: the hose model, or any networkx graph with shortest paths. A flow (src, dst) is a tuple of links.

In the hose model a link is a port: each host has one each way, and the fabric between them is never the bottleneck.
In a graph every edge is two links, one each way; among equally short paths a stable hash of the pair picks one (ECMP).
What the policies are shown of a network are hosts with the rates of their links, and routes over all other links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from zlib import crc32

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from controller.model import BITS_PER_BYTE, Demand, Direction, Host, Port, Routes
from controller.ordering.loads import summed
from simulator.errors import InputError

_SRC, _DST, _BYTES = attrgetter("src"), attrgetter("dst"), attrgetter("bytes")


PAYLOAD_SHARE = 1448 / 1514
"""Of what a link carries, TCP's own bytes: a full frame has 14 bytes of Ethernet's, 20 of IP's and 32 of TCP's."""


class Network(ABC):
    """Links with capacities, and the path of each pair of hosts.

    ``ports[i]`` names link i and ``capacity[i]`` is its bytes/s. ``routes`` are over the links that are no host's own;
    None: there are none. Raises InputError where a rate is not above 0.
    """

    routes: Routes | None = None

    def __init__(self, ports: tuple[Port, ...], capacity: NDArray[np.float64]) -> None:
        for port, rate in zip(ports, capacity, strict=True):
            if not 0 < rate < float("inf"):
                bps = rate * BITS_PER_BYTE
                raise InputError(f"host {port.host}: {port.direction}_bps is {bps:g}; it must be a number above 0")
        self.ports = ports
        self.capacity = capacity
        self.number = {(port.host, port.direction): i for i, port in enumerate(ports)}

    @property
    @abstractmethod
    def hops(self) -> int:
        """No path has more links than this."""

    @abstractmethod
    def path(self, src: str, dst: str) -> tuple[int, ...]:
        """The links that a flow crosses, in order, at least one. Raises InputError for a host that is not there."""

    def bytes_on(self, flows: Sequence[Demand]) -> NDArray[np.float64]:
        """Bytes of flows that cross each link, (L,). Raises InputError as ``path``."""
        by_link = np.zeros(len(self.ports))
        for flow in flows:
            for link in self.path(flow.src, flow.dst):
                by_link[link] += flow.bytes
        return by_link

    @abstractmethod
    def shown(self, hosts: Mapping[str, Host]) -> Mapping[str, Host]:
        """The workload's hosts as policies see them: with the rates that their links have here."""


class Hose(Network):
    """A port each way a host, and nothing else that is ever full. A flow to its own source loads both ports."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        ports = tuple(Port(name, direction) for name in hosts for direction in (Direction.EGRESS, Direction.INGRESS))
        rates = [hosts[port.host].rate_bps(port.direction) / BITS_PER_BYTE for port in ports]
        super().__init__(ports, np.array(rates, dtype=np.float64))
        self._egress = {name: self.number[name, Direction.EGRESS] for name in hosts}
        self._ingress = {name: self.number[name, Direction.INGRESS] for name in hosts}

    @property
    def hops(self) -> int:
        """Out and in."""
        return 2

    def path(self, src: str, dst: str) -> tuple[int, ...]:
        """Out of one port, into another."""
        try:
            return self.number[src, Direction.EGRESS], self.number[dst, Direction.INGRESS]
        except KeyError as error:
            raise InputError(f"host {error.args[0][0]}: a flow names it, but there is no such host") from error

    def bytes_on(self, flows: Sequence[Demand]) -> NDArray[np.float64]:
        """All flows at once: a coflow may have tens of thousands."""
        n = len(flows)
        try:
            out = np.fromiter(map(self._egress.__getitem__, map(_SRC, flows)), np.int64, n)
            into = np.fromiter(map(self._ingress.__getitem__, map(_DST, flows)), np.int64, n)
        except KeyError as error:
            raise InputError(f"host {error.args[0]}: a flow names it, but there is no such host") from None
        sizes = np.fromiter(map(_BYTES, flows), np.float64, n)
        return summed(np.concatenate((out, into)), np.concatenate((sizes, sizes)), len(self.ports))

    def shown(self, hosts: Mapping[str, Host]) -> Mapping[str, Host]:
        """As they are: their rates are all that there is."""
        return hosts


class Graph(Network):
    """A networkx graph of hosts and switches; the rate of an edge in bit/s is its attribute ``rate_bps``.

    The edge of a host that has only one is that host's two ports, and the host's own rates bound it; any other edge (u,
    v), u < v by name, is the port "u--v": egress from u to v. An edge without a rate has that of its host, or is an
    error. Of equally short paths a stable hash of the pair picks one. A flow to its own source loads both ports of its
    host; where that has not one edge but several it is an error, for which of them it would load nobody says.
    """

    def __init__(self, graph: nx.Graph[str], hosts: Mapping[str, Host]) -> None:
        if graph.is_directed() or graph.is_multigraph():
            raise InputError(
                "the graph is directed or has parallel edges; give one edge a cable, with its rate each way"
            )
        for name in hosts:
            if name not in graph:
                raise InputError(f"host {name}: it is not in the network's graph")
        ports: list[Port] = []
        rates: list[float] = []
        self._link: dict[tuple[str, str], int] = {}
        for first, second in sorted(tuple(sorted(edge, key=str)) for edge in graph.edges):
            for a, b in ((first, second), (second, first)):
                port, bounds = _port_of(graph, hosts, a, b)
                rate = graph.edges[a, b].get("rate_bps")
                if rate is not None:
                    bounds.append(float(rate))
                if not bounds:
                    raise InputError(f"link {a} to {b}: it has no rate_bps")
                self._link[a, b] = len(ports)
                ports.append(port)
                rates.append(min(bounds) / BITS_PER_BYTE)
        super().__init__(tuple(ports), np.array(rates, dtype=np.float64))
        self._graph = graph
        self._distance: dict[str, Mapping[str, int]] = {}
        self._paths: dict[tuple[str, str], tuple[int, ...]] = {}
        own = {host for host in hosts if graph.degree[host] == 1}
        inner = [i for (a, b), i in self._link.items() if a not in own and b not in own]
        if inner:
            self._inner = {link: place for place, link in enumerate(inner)}
            self._between: dict[tuple[str, str], tuple[int, ...]] = {}
            self.routes = Routes(tuple((ports[i], rates[i] * BITS_PER_BYTE) for i in inner), self._crossed)

    @property
    def hops(self) -> int:
        """Twice the way from any node to the node farthest from it: no two nodes are farther from each other."""
        longest = 1
        for part in nx.connected_components(self._graph):
            away = nx.single_source_shortest_path_length(self._graph, min(part, key=str))
            longest = max(longest, 2 * max(away.values()))
        return longest

    def path(self, src: str, dst: str) -> tuple[int, ...]:
        """A shortest path: where several next hops are as near, the hash of the pair and the place picks."""
        if (src, dst) not in self._paths:
            self._paths[src, dst] = self._out_and_in(src) if src == dst else self._shortest(src, dst)
        return self._paths[src, dst]

    def shown(self, hosts: Mapping[str, Host]) -> Mapping[str, Host]:
        """With the rates of their edges, all together where there are several."""
        shown_hosts = {}
        for name, host in hosts.items():
            out, into = (
                sum(float(self.capacity[self._link[hop]]) for hop in hops) * BITS_PER_BYTE
                for hops in ([(name, n) for n in self._graph[name]], [(n, name) for n in self._graph[name]])
            )
            shown_hosts[name] = replace(host, egress_bps=out, ingress_bps=into) if out else host
        return shown_hosts

    def _crossed(self, src: str, dst: str) -> tuple[int, ...]:
        crossed = self._between.get((src, dst))
        if crossed is None:
            crossed = tuple(self._inner[link] for link in self.path(src, dst) if link in self._inner)
            self._between[src, dst] = crossed
        return crossed

    def _out_and_in(self, host: str) -> tuple[int, ...]:
        self._check(host)
        near = list(self._graph[host])
        if len(near) != 1:
            raise InputError(
                f"host {host}: a flow goes from it to itself, which loads the two ports of a host with one link; "
                f"in the network's graph it has {len(near)}"
            )
        return self._link[host, near[0]], self._link[near[0], host]

    def _check(self, name: str) -> None:
        if name not in self._graph:
            raise InputError(f"host {name}: a flow names it, but it is not in the network's graph")

    def _shortest(self, src: str, dst: str) -> tuple[int, ...]:
        for name in (src, dst):
            self._check(name)
        if dst not in self._distance:
            self._distance[dst] = nx.single_source_shortest_path_length(self._graph, dst)
        distance = self._distance[dst]
        if src not in distance:
            raise InputError(f"hosts {src} and {dst}: a flow goes from one to the other, but no path does")
        places = [src]
        while places[-1] != dst:
            here = places[-1]
            nearer = sorted(n for n in self._graph[here] if distance.get(n, len(distance)) == distance[here] - 1)
            places.append(nearer[crc32(f"{src}|{dst}|{here}".encode()) % len(nearer)])
        return tuple(self._link[hop] for hop in pairwise(places))


def _port_of(graph: nx.Graph[str], hosts: Mapping[str, Host], a: str, b: str) -> tuple[Port, list[float]]:
    """The port that the direction a to b of an edge is, and the hosts' rates that bound it."""
    bounds = []
    if a in hosts and graph.degree[a] == 1:
        bounds.append(hosts[a].egress_bps)
    if b in hosts and graph.degree[b] == 1:
        bounds.append(hosts[b].ingress_bps)
    if a in hosts and graph.degree[a] == 1:
        return Port(a, Direction.EGRESS), bounds
    if b in hosts and graph.degree[b] == 1:
        return Port(b, Direction.INGRESS), bounds
    low, high = sorted((a, b))
    return Port(f"{low}--{high}", Direction.EGRESS if a == low else Direction.INGRESS), bounds

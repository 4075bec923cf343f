"""From a job's sockets to what its traffic is told apart by: one link for many where a port is the job's alone.

Every TCP connection between this host and a peer has a socket here, so a look at all sockets of the host, not only the
job's, shows whether a port toward a peer is used by the job alone. Then the port stands for all connections through it:
those that come and go in the meantime change nothing, and nobody has to be told of them. Pure.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from host_reporter.discovery.sockets.sock_diag import LISTEN, Socket

REMEMBERED_SECONDS = 30.0
"""A port that had several connections within this time stands for them, also while it has one or none."""

MAX_REMEMBERED = 20_000


class Link(NamedTuple):
    """Connections to a peer: all through one port at one end, or (both ports) exactly one.

    ``local`` is the address at this end; empty: nobody asks for it.
    """

    remote: bytes
    local_port: int | None
    remote_port: int | None
    local: bytes = b""


_Port = tuple[bytes, bytes, bool, int]
"""The address at this end, a peer, whether the port is at this end, and the port."""


class Uses:
    """How many sockets of a host use each port toward each peer."""

    def __init__(self, sockets: Iterable[Socket]) -> None:
        self.local: Counter[tuple[bytes, int]] = Counter()
        self.remote: Counter[tuple[bytes, int]] = Counter()
        for sock in sockets:
            if sock.state != LISTEN:
                self.local[sock.remote, sock.local_port] += 1
                self.remote[sock.remote, sock.remote_port] += 1


class Links:
    """One job's links in one network namespace, over time."""

    def __init__(self) -> None:
        self._ports: OrderedDict[_Port, tuple[int, float]] = OrderedDict()
        """Connections that were seen through a port, and when the last one was."""
        self._shared: set[_Port] = set()
        self._counted: set[int] = set()

    def look(self, own: Iterable[Socket], uses: Uses, now: float, everywhere: Uses | None = None) -> frozenset[Link]:
        """The links now. ``own``: the job's sockets; ``uses``: of all sockets of the host; ``now``: of a steady clock.

        ``everywhere``: of the job's sockets in all network namespaces of the host, where there are several.
        """
        own = list(own)
        listens = {sock.local_port for sock in own if sock.state == LISTEN}
        talking = [sock for sock in own if sock.state != LISTEN]
        here = Uses(talking) if everywhere is None else everywhere
        self._remember(talking, now)
        links: set[Link] = set()
        for sock in talking:
            own_address, peer, local, remote = sock.local, sock.remote, sock.local_port, sock.remote_port
            is_own = here.local[peer, local] == uses.local[peer, local]
            is_peers = here.remote[peer, remote] == uses.remote[peer, remote]
            if is_own and (local in listens or (own_address, peer, True, local) in self._shared):
                links.add(Link(peer, local, None, own_address))
            elif is_peers and (own_address, peer, False, remote) in self._shared:
                links.add(Link(peer, None, remote, own_address))
            else:
                links.add(Link(peer, local, remote, own_address))
        # What has no connection just now, unless somebody else has one through it.
        for own_address, peer, is_local, port in self._shared:
            others: Mapping[tuple[bytes, int], int] = uses.local if is_local else uses.remote
            if others.get((peer, port), 0) == 0:
                links.add(Link(peer, port, None, own_address) if is_local else Link(peer, None, port, own_address))
        return frozenset(links)

    def _remember(self, talking: list[Socket], now: float) -> None:
        cookies = {sock.cookie for sock in talking}
        for sock in talking:
            is_new = sock.cookie not in self._counted
            ends = (sock.local, sock.remote)
            for port in ((*ends, True, sock.local_port), (*ends, False, sock.remote_port)):
                count, _ = self._ports.get(port, (0, 0.0))
                self._ports[port] = (count + is_new, now)
                if count + is_new > 1:
                    self._shared.add(port)
                # The oldest are forgotten first.
                self._ports.move_to_end(port)
        self._counted = cookies
        while self._ports:
            oldest = next(iter(self._ports))
            if len(self._ports) <= MAX_REMEMBERED and now - self._ports[oldest][1] <= REMEMBERED_SECONDS:
                break
            self._ports.popitem(last=False)
            self._shared.discard(oldest)

"""Looks at interfaces, ports and sockets every few seconds, and hands on what no socket explains."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from controller.wire import MAX_BYTES, MAX_INTERFACES, InterfaceKind, InterfaceTraffic
from host_reporter.discovery.sockets.netlink import Looked
from host_reporter.ip_addresses import packed
from host_reporter.nic import netdev_list
from host_reporter.nic.netdev import Count, Network
from host_reporter.notices import Notices
from host_reporter.unseen import rdma_ports
from host_reporter.unseen.choice import Choice, choose
from host_reporter.unseen.counts import Moment, Port, Sample
from host_reporter.unseen.sample import sample
from host_reporter.unseen.tcp_bytes import TcpBytes
from host_reporter.unseen.window import Said, Window

INTERVAL_SECONDS = 5.0
"""Read the counters this often, while a job is followed."""

_KEY = "counters"
_OWN = 0
_NOTHING = Choice(frozenset(), frozenset())


class _Reading(NamedTuple):
    """The interfaces' and ports' counts at a moment."""

    time: float
    network: Network
    ports: Sequence[Port]


class Addresses(Protocol):
    """Knows the hosts' addresses; see ``uplink.peers.PeerBook``."""

    @property
    def addresses(self) -> Mapping[str, str] | None:
        """Hosts by address; None: not known yet."""


class Observer:
    """Compares what interfaces carry with what sockets say, for ``host``. For one thread. No method raises.

    ``interfaces`` are those that the agent orders. ``changed`` is called with all interfaces at each
    comparison. ``rdma`` is the folder of the RDMA devices.
    """

    def __init__(
        self,
        host: str,
        book: Addresses,
        notices: Notices,
        *,
        interfaces: Collection[str],
        changed: Callable[[tuple[InterfaceTraffic, ...]], None],
        rdma: Path = rdma_ports.ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._book = book
        self._notices = notices
        self._interfaces = interfaces
        self._changed = changed
        self._rdma = rdma
        self._clock = clock
        self._tables: dict[int, TcpBytes] = {}
        self._gone = Count()
        """What the sockets of namespaces have carried that are left."""
        self._within: frozenset[bytes] = frozenset()
        self._window = Window()
        self._next = float("-inf")
        self._early: _Reading | None = None
        """What was read before the sockets were listed; None: it is not time to compare."""
        self._ordered: frozenset[str] = frozenset()
        self._ports: frozenset[str] = frozenset()

    def looking(self) -> None:
        """The TCP sockets will be listed now."""
        self._early = None
        if self._clock() >= self._next:
            self._next = self._clock() + INTERVAL_SECONDS
            self._early = self._read()

    def looked(self, namespaces: Sequence[Looked], *, is_whole: bool) -> None:
        """All TCP sockets were listed, by network namespace. ``is_whole`` of False: some of them are not known."""
        early, late = self._early, self._read() if self._early is not None else None
        if late is not None:
            listed = (sock.local for look in namespaces for sock in look.sockets)
            self._within = frozenset(late.network.addresses).union(listed)
        self._forget({look.namespace for look in namespaces})
        for look in namespaces:
            table = self._tables.get(look.namespace)
            if table is None:
                table = self._tables[look.namespace] = TcpBytes(from_first_look=look.namespace == _OWN)
            if late is not None:
                table.count(look.sockets, self._within)
            table.settle(look.ended, self._within)
        if not is_whole:
            self._window.restart(self._clock())
        elif early is not None and late is not None:
            self._compare(early, late)
        if early is not None:
            self._tell()

    def idle(self) -> None:
        """No job is followed any more, so nothing is compared."""
        self._tables.clear()
        self._gone = Count()
        self._next = float("-inf")
        if self._window.said:
            self._window.end()
            self._ordered, self._ports = frozenset(), frozenset()
            self._tell()

    def _read(self) -> _Reading | None:
        try:
            return _Reading(self._clock(), netdev_list.read(), rdma_ports.read(self._rdma))
        except OSError as error:
            self._notices.say(_KEY, f"the interfaces' counters cannot be read: {error.strerror or error}")
            self._window.restart(self._clock())
            return None

    def _forget(self, present: Collection[int]) -> None:
        """Let namespaces go that nobody of ours is in any more; what their sockets have carried stays carried."""
        for namespace in self._tables.keys() - present:
            self._gone = self._gone.plus(self._tables.pop(namespace).sum)

    def _compare(self, early: _Reading, late: _Reading) -> None:
        addresses = self._book.addresses
        if addresses is None:
            return
        mine = [packed(text) for text, name in addresses.items() if name == self._host]
        own = {address for address in mine if address is not None}
        choice = choose(late.network, own, self._interfaces)
        if not choice.ordered:
            self._notices.say(
                _KEY,
                "no interface here has an address that the controller's settings name for this host, so bytes that go "
                "past its sockets are not noticed; --interface names the interface",
            )
            choice = _NOTHING
        else:
            self._notices.clear(_KEY, "the interfaces' counters are read")
        early_choice = choose(early.network, own, self._interfaces) if choice.ordered else _NOTHING
        self._window.add(Moment(self._sample(early, early_choice), self._sample(late, choice)))
        self._ordered = frozenset(late.network.netdevs[index].name for index in choice.ordered)
        self._ports = frozenset(port.name for port in late.ports)

    def _sample(self, reading: _Reading, choice: Choice) -> Sample:
        others = [table.sum for namespace, table in self._tables.items() if namespace != _OWN]
        own = self._tables[_OWN].total if _OWN in self._tables else {}
        time, network, ports = reading
        return sample(time, network, choice, ports, own=own, others=[*others, self._gone])

    def _tell(self) -> None:
        """Hand on what is known of the ordered interfaces and the ports; of other interfaces nothing is told."""
        said = sorted(self._window.said.items())
        told: list[tuple[str, InterfaceKind, tuple[Said, Said]]] = []
        told += [(name, "network", both) for name, both in said if name in self._ordered]
        told += [(name, "rdma", both) for name, both in said if name in self._ports]
        self._changed(tuple(_traffic(name, kind, *both) for name, kind, both in told[:MAX_INTERFACES]))


def _traffic(name: str, kind: InterfaceKind, sent: Said, received: Said) -> InterfaceTraffic:
    return InterfaceTraffic(
        interface=name,
        kind=kind,
        sent=min(float(sent.carried), MAX_BYTES),
        received=min(float(received.carried), MAX_BYTES),
        unseen_sent=min(sent.unseen, MAX_BYTES),
        unseen_received=min(received.unseen, MAX_BYTES),
        unseen_sent_rate=sent.rate,
        unseen_received_rate=received.rate,
    )

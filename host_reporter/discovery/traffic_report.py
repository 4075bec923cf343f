"""Turns what was found of a job's traffic into a message: addresses become hosts, surplus links are counted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from controller.model import endpoint
from controller.wire import MAX_BATCH_LINKS, MAX_LINKS, MAX_PEERS, JobTraffic, LinkSeen, PeerBytes
from host_reporter.discovery.sockets.links import Link
from host_reporter.discovery.sockets.table import Ends, Traffic
from host_reporter.ip_addresses import is_loopback, text_of

NO_INTERFACES: Mapping[str, str] = MappingProxyType({})


class FoundTraffic(NamedTuple):
    """What a look found of a job, over all network namespaces.

    ``missed``: bytes sent that may be its own beside those of ``traffic``; None: nobody knows how many.
    """

    links: frozenset[Link]
    connections: int
    traffic: Mapping[Ends, Traffic]
    missed: int | None = 0


class _Pair(NamedTuple):
    """Who talks: a peer, by interface where it has several, and the host's own interface where that is known."""

    peer: str
    interface: str | None


class TrafficReport(NamedTuple):
    """A job's traffic for the wire, and the addresses that are no known host's."""

    traffic: JobTraffic
    unknown: frozenset[str]


def traffic_report(
    job: str,
    traffic: FoundTraffic,
    addresses: Mapping[str, str],
    own: str,
    *,
    as_of: float,
    counter: int,
    room: int = MAX_LINKS,
    interfaces: Mapping[str, str] = NO_INTERFACES,
) -> TrafficReport:
    """A job's traffic. What stays in the host itself is none. ``room``: links that may be named.

    ``interfaces`` are by address, of hosts that have several. The host's own is that of the address which a connection
    has here. An address that is none of the host's, such as a container's, is of no known interface.
    """
    unknown: set[str] = set()

    def host(remote: bytes) -> str | None:
        address = text_of(remote)
        name = addresses.get(address)
        if name is None and not is_loopback(remote):
            unknown.add(address)
        return None if name is None or name == own else endpoint(name, interfaces.get(address))

    def interface(local: bytes) -> str | None:
        address = text_of(local) if local else ""
        return interfaces.get(address) if addresses.get(address) == own else None

    links: dict[_Pair, list[Link]] = {}
    for link in traffic.links:
        if (name := host(link.remote)) is not None:
            links.setdefault(_Pair(name, interface(link.local)), []).append(link)
    named = [(pair, link) for pair, found in sorted(links.items(), key=_by_names) for link in _told_once(found)]
    left_out = max(len(named) - min(room, MAX_LINKS), 0)
    if left_out:
        named = _some_of_each(named, min(room, MAX_LINKS))
    peers: dict[_Pair, tuple[float, float]] = {}
    for ends, (sent, received) in traffic.traffic.items():
        if (name := host(ends.remote)) is not None:
            pair = _Pair(name, interface(ends.local))
            before = peers.get(pair, (0.0, 0.0))
            peers[pair] = (before[0] + sent, before[1] + received)
    return TrafficReport(
        JobTraffic(
            job=job,
            as_of=as_of,
            counter=counter,
            links=tuple(
                LinkSeen(peer=peer, port=link.local_port, peer_port=link.remote_port, interface=interface)
                for (peer, interface), link in named
            ),
            left_out=left_out,
            connections=traffic.connections,
            peers=tuple(
                PeerBytes(peer=peer, sent=float(sent), received=float(received), interface=interface)
                for (peer, interface), (sent, received) in sorted(peers.items(), key=_by_names)[:MAX_PEERS]
            ),
            missed=None if traffic.missed is None else float(traffic.missed),
        ),
        frozenset(unknown),
    )


def fitting(parts: Iterable[JobTraffic]) -> tuple[JobTraffic, ...]:
    """The parts, with as many links in all as one batch may have."""
    room, taken = MAX_BATCH_LINKS, []
    for part in parts:
        links = part.links
        if links is not None and len(links) > room:
            more = part.left_out + len(links) - room
            taken.append(part.model_copy(update={"links": links[:room], "left_out": more}))
            room = 0
        else:
            taken.append(part)
            room -= len(links or ())
    return tuple(taken)


def _by_names(entry: tuple[_Pair, object]) -> tuple[str, str]:
    return (entry[0].peer, entry[0].interface or "")


def _told_once(links: Iterable[Link]) -> list[Link]:
    """The links of a pair in their order. Two with the same ports, between other addresses of it, are told as one."""
    return list({(link.local_port, link.remote_port): link for link in sorted(links, key=_order)}.values())


def _order(link: Link) -> tuple[bytes, int, int, bytes]:
    # Those that stand for many come first: a port of None.
    return (link.remote, link.local_port or 0, link.remote_port or 0, link.local)


def _some_of_each(named: list[tuple[_Pair, Link]], most: int) -> list[tuple[_Pair, Link]]:
    """At most ``most``, and as far as there is room one of every pair."""
    firsts: dict[_Pair, tuple[_Pair, Link]] = {}
    for entry in named:
        firsts.setdefault(entry[0], entry)
    chosen = list(firsts.values())[:most]
    rest = [entry for entry in named if firsts[entry[0]] is not entry]
    return sorted(chosen + rest[: most - len(chosen)], key=lambda entry: (_by_names(entry), _order(entry[1])))

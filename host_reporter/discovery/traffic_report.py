"""Turns what was found of a job's traffic into a message: addresses become hosts, surplus links are counted. Pure."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.wire import MAX_BATCH_LINKS, MAX_LINKS, MAX_PEERS, JobTraffic, LinkSeen, PeerBytes
from host_reporter.discovery.links import Link
from host_reporter.discovery.socket_table import Traffic


class FoundTraffic(NamedTuple):
    """What a look found of a job, over all network namespaces.

    ``missed``: bytes sent that may be its own beside those of ``traffic``; None: nobody knows how many.
    """

    links: frozenset[Link]
    connections: int
    traffic: Mapping[bytes, Traffic]
    missed: int | None = 0


class TrafficReport(NamedTuple):
    """A job's traffic for the wire, and the addresses that are no known host's."""

    traffic: JobTraffic
    unknown: frozenset[str]


@lru_cache(maxsize=65536)
def text_of(address: bytes) -> str:
    """An IPv4 address as people write it."""
    return socket.inet_ntoa(address)


def traffic_report(
    job: str,
    traffic: FoundTraffic,
    addresses: Mapping[str, str],
    own: str,
    *,
    as_of: float,
    counter: int,
    room: int = MAX_LINKS,
) -> TrafficReport:
    """A job's traffic. What stays in the host itself is none. ``room``: links that may be named."""
    unknown: set[str] = set()

    def host(remote: bytes) -> str | None:
        address = text_of(remote)
        name = addresses.get(address)
        if name is None and not address.startswith("127."):
            unknown.add(address)
        return None if name == own else name

    links: dict[str, list[Link]] = {}
    for link in traffic.links:
        if (name := host(link.remote)) is not None:
            links.setdefault(name, []).append(link)
    named = [(peer, link) for peer, peer_links in sorted(links.items()) for link in sorted(peer_links, key=_order)]
    left_out = max(len(named) - min(room, MAX_LINKS), 0)
    if left_out:
        named = _some_of_each(named, min(room, MAX_LINKS))
    peers: dict[str, tuple[float, float]] = {}
    for remote, (sent, received) in traffic.traffic.items():
        if (name := host(remote)) is not None:
            before = peers.get(name, (0.0, 0.0))
            peers[name] = (before[0] + sent, before[1] + received)
    return TrafficReport(
        JobTraffic(
            job=job,
            as_of=as_of,
            counter=counter,
            links=tuple(LinkSeen(peer=peer, port=link.local_port, peer_port=link.remote_port) for peer, link in named),
            left_out=left_out,
            connections=traffic.connections,
            peers=tuple(
                PeerBytes(peer=peer, sent=float(sent), received=float(received))
                for peer, (sent, received) in sorted(peers.items())[:MAX_PEERS]
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


def _order(link: Link) -> tuple[bytes, int, int]:
    # Those that stand for many come first: a port of None.
    return (link.remote, link.local_port or 0, link.remote_port or 0)


def _some_of_each(named: list[tuple[str, Link]], most: int) -> list[tuple[str, Link]]:
    """At most ``most``, and as far as there is room one of every peer."""
    firsts: dict[str, tuple[str, Link]] = {}
    for entry in named:
        firsts.setdefault(entry[0], entry)
    chosen = list(firsts.values())[:most]
    rest = [entry for entry in named if firsts[entry[0]] is not entry]
    return sorted(chosen + rest[: most - len(chosen)], key=lambda entry: (entry[0], _order(entry[1])))

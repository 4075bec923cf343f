"""Locates jobs' traffic: flows and listening ports become addresses, ports and sites in the network. Pure.

The rule compiler and the hosts' marks both use it, so that switches and hosts agree on the packets of each job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

from controller.memo import Memo
from controller.model import MAX_CLASSES, WITH_PORTS, Flow, Host, Job, Listeners, Snapshot, TrafficProtocol
from controller.rules.families import addresses, pairs

_REMEMBERED_JOBS = 32768


class RuleSite(NamedTuple):
    """The packets of a flow: IP addresses of one family and ports (None: any), and where they enter the network.

    ``src_host`` is the server that sends. ``switch`` and ``in_port`` are where the source is attached; they are None
    where that is not known.
    """

    src: str
    dst: str
    src_port: int | None
    dst_port: int | None
    protocol: TrafficProtocol
    src_host: str
    switch: int | None
    in_port: int | None


class Listening(NamedTuple):
    """The listening ports of a job by host, and the hosts that may send to them. All hosts have an address.

    ``senders`` are hosts by their switch (None: it is not known). ``ends`` are all ports with each address of their
    host.
    """

    ports: Mapping[Host, tuple[int, ...]]
    senders: Mapping[int | None, tuple[Host, ...]]
    ends: frozenset[tuple[str, int]]
    protocol: TrafficProtocol = "tcp"

    def entrances(self, host: Host) -> Iterator[tuple[int | None, Host | None]]:
        """Yields where packets to ``host`` enter the network: each switch, and the host that sends from there.

        A switch of None stands for any switch, and a host of None for several hosts.
        """
        if len(self.senders.get(None, ())) > (host.switch is None):
            yield None, None
            return
        for switch, senders in self.senders.items():
            others = (
                senders
                if switch != host.switch or len(senders) > 2
                else [sender for sender in senders if sender != host]
            )
            if switch is not None and others:
                yield switch, others[0] if len(others) == 1 else None

    def rules_at(self) -> tuple[Counter[int], int]:
        """Returns how many rules these ports need: at single switches, and in addition at every switch."""
        at: Counter[int] = Counter()
        everywhere = 0
        for host, ports in self.ports.items():
            own = len(addresses(host))
            sites = [(host.switch, own)]
            for switch, sender in self.entrances(host):
                sites.append((switch, own if sender is None else len(list(pairs(sender, host)))))
            for switch, count in sites:
                if switch is None:
                    everywhere += count * len(ports)
                else:
                    at[switch] += count * len(ports)
        return at, everywhere

    def without(self, ends: Collection[tuple[str, int]]) -> Listening:
        """Returns the same without the ports of ``ends``."""
        left = {
            host: tuple(port for port in ports if not any((address, port) in ends for address in addresses(host)))
            for host, ports in self.ports.items()
        }
        return self._replace(ports={host: ports for host, ports in left.items() if ports}, ends=self.ends - set(ends))


Packets = tuple[str, str, int | None, int | None, TrafficProtocol]
"""The fields that identify the packets of a flow: the first five of a ``RuleSite``."""


class Claimed(NamedTuple):
    """A job, its class, and its traffic: declared flows, listening ports, and flows that agents discovered.

    ``listening`` has the ports of TCP, and those of UDP, where there are any.
    """

    job: Job
    service_class: int
    declared: tuple[RuleSite, ...]
    listening: tuple[Listening, ...]
    discovered: tuple[RuleSite, ...]


def claimed_flows(snapshot: Snapshot, classes: Mapping[str, int]) -> Iterator[Claimed]:
    """Yields every job with a class, its class, and its traffic. Traffic that two jobs claim goes to the earlier job.

    Traffic without ports that two jobs claim goes to neither, because both may well send it. Traffic of a job without a
    class, and of hosts without an address, is left out. Raises ValueError for a class that the snapshot does not have.
    """
    taken_ends: dict[TrafficProtocol, set[tuple[str, int]]] = {}
    count = min(snapshot.classes, MAX_CLASSES)
    sites_of = traffic_sites(snapshot.hosts)
    taken = _claimed_twice(sites_of, (job for job in snapshot.jobs if job.id in classes))
    for job in sorted(snapshot.jobs, key=lambda job: (job.arrival, job.id)):
        service_class = classes.get(job.id)
        if service_class is None:
            continue
        if not 0 <= service_class < count:
            raise ValueError(f"job {job.id}: class {service_class} is not one of 0..{count - 1}")
        parts = []
        for flows in (job.flows, job.found):
            claimed, packets = sites_of.flows(flows)
            if not taken.isdisjoint(packets):
                claimed = _shared_object(tuple(site for site in claimed if site[:5] not in taken))
            taken |= packets
            parts.append(claimed)
        listening = tuple(filter(None, (_free(each, taken_ends) for each in sites_of.all_listening(job))))
        yield Claimed(job, service_class, parts[0], listening, parts[1])


def _free(listening: Listening, taken: dict[TrafficProtocol, set[tuple[str, int]]]) -> Listening | None:
    """Takes the listening ports that no earlier job has taken; returns them, or None where none is left."""
    ends = taken.setdefault(listening.protocol, set())
    if not ends.isdisjoint(listening.ends):
        listening = _left(listening, listening.ends & ends)
    ends |= listening.ends
    return listening if listening.ends else None


_left_of: Memo[Listening, dict[frozenset[tuple[str, int]], Listening]] = Memo(_REMEMBERED_JOBS)


def _left(listening: Listening, gone: frozenset[tuple[str, int]]) -> Listening:
    """Returns the ports without those of ``gone``: the same object each time, because rules are remembered by it."""
    known = _left_of.get(listening, dict)
    if gone not in known:
        known.clear()
        known[gone] = listening.without(gone)
    return known[gone]


def _claimed_twice(sites_of: TrafficSites, jobs: Iterable[Job]) -> set[Packets]:
    """Returns the packets without ports that several of these jobs claim."""
    claims = Counter(packets for job in jobs for packets in sites_of.without_ports(job.flows))
    return {packets for packets, jobs_of in claims.items() if jobs_of > 1}


class TrafficSites:
    """The sites of flows between given hosts. A job's sites are remembered as long as its flows are the same object."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.items = tuple(hosts.items())
        self._hosts = dict(hosts)
        self._flows: Memo[tuple[Flow, ...], tuple[tuple[RuleSite, ...], frozenset[Packets]]] = Memo(_REMEMBERED_JOBS)
        self._without_ports: Memo[tuple[Flow, ...], frozenset[Packets]] = Memo(_REMEMBERED_JOBS)
        self._listening: dict[TrafficProtocol, Memo[Listeners, Listening]] = {
            "tcp": Memo(_REMEMBERED_JOBS),
            "udp": Memo(_REMEMBERED_JOBS),
        }

    def flows(self, flows: tuple[Flow, ...]) -> tuple[tuple[RuleSite, ...], frozenset[Packets]]:
        """Returns the sites of a job's flows, each once, and their packets."""
        return self._flows.get(flows, lambda: self._locate_flows(flows))

    def without_ports(self, flows: tuple[Flow, ...]) -> frozenset[Packets]:
        """Returns the packets of a job's flows that have no ports."""
        if not flows:
            return frozenset()
        return self._without_ports.get(flows, lambda: frozenset(filter(_has_no_ports, self.flows(flows)[1])))

    def all_listening(self, job: Job) -> Iterator[Listening]:
        """Yields the sites of a job's listening ports, those of each protocol together."""
        if job.listeners.ends:
            yield self._listening_by(job.listeners, "tcp")
        if job.udp_listeners.ends:
            yield self._listening_by(job.udp_listeners, "udp")

    def _listening_by(self, listeners: Listeners, protocol: TrafficProtocol) -> Listening:
        return self._listening[protocol].get(listeners, lambda: self._locate_ports(listeners, protocol))

    def _locate_flows(self, flows: tuple[Flow, ...]) -> tuple[tuple[RuleSite, ...], frozenset[Packets]]:
        sites: dict[Packets, RuleSite] = {}
        for flow in flows:
            src, dst = self._hosts.get(flow.src), self._hosts.get(flow.dst)
            if src is None or dst is None:
                continue
            for source, destination in pairs(src, dst):
                packets = (source, destination, flow.src_port, flow.dst_port, flow.protocol)
                sites.setdefault(packets, RuleSite(*packets, src.server, src.switch, in_port(src)))
        return tuple(sites.values()), frozenset(sites)

    def _locate_ports(self, listeners: Listeners, protocol: TrafficProtocol) -> Listening:
        hosts = {name: host for name in listeners.among if (host := self._addressed(name)) is not None}
        senders: dict[int | None, list[Host]] = {}
        for host in hosts.values():
            senders.setdefault(host.switch, []).append(host)
        ports: dict[Host, list[int]] = {}
        for name, port in listeners.ends:
            if name in hosts:
                ports.setdefault(hosts[name], []).append(port)
        return Listening(
            {host: tuple(members) for host, members in ports.items()},
            {switch: tuple(members) for switch, members in senders.items()},
            frozenset(
                (address, port) for host, members in ports.items() for address in addresses(host) for port in members
            ),
            protocol,
        )

    def _addressed(self, name: str) -> Host | None:
        host = self._hosts.get(name)
        return host if host is not None and addresses(host) else None


class _Latest:
    """The sites for the sets of hosts that were used last."""

    sites: ClassVar[tuple[TrafficSites, ...]] = ()


def traffic_sites(hosts: Mapping[str, Host]) -> TrafficSites:
    """Returns the sites of flows between these hosts: the same object as long as the hosts are equal."""
    items = tuple(hosts.items())
    for known in _Latest.sites:
        if known.items == items:
            return known
    _Latest.sites = (TrafficSites(hosts), *_Latest.sites[:3])
    return _Latest.sites[0]


def in_port(host: Host) -> int | None:
    """Returns the port by which a host's packets enter its switch; None where the switch or the port is not known."""
    return host.switch_port if host.switch is not None else None


def _has_no_ports(packets: Packets) -> bool:
    return packets[-1] not in WITH_PORTS


@lru_cache(maxsize=16384)
def _shared_object(sites: tuple[RuleSite, ...]) -> tuple[RuleSite, ...]:
    """Returns the same object for equal sites, because their rules are remembered by the object's identity."""
    return sites

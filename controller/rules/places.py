"""Where jobs' traffic runs: flows and listening ports as addresses, TCP ports and places in the network. Pure.

The rule compiler and the hosts' marks both begin with this, so that both ends of a link agree on what is whose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, NamedTuple

from controller.memo import Memo
from controller.model import MAX_CLASSES, Flow, Host, Job, Listeners, Snapshot

_REMEMBERED_JOBS = 32768


class RuleSite(NamedTuple):
    """The packets of a flow: IPv4 addresses and TCP ports (None: any), and where they enter the network.

    ``switch`` and ``in_port`` are where the source is plugged in; None: that is not known.
    """

    src: str
    dst: str
    src_port: int | None
    dst_port: int | None
    src_host: str
    switch: int | None
    in_port: int | None


class Listening(NamedTuple):
    """The listening ports of a job by the host whose they are, which has an address; and who may send to them.

    ``senders`` are hosts by their switch (None: it is not known). ``ends`` are all ports with their IPv4 address.
    """

    ports: Mapping[Host, tuple[int, ...]]
    senders: Mapping[int | None, tuple[Host, ...]]
    ends: frozenset[tuple[str, int]]

    def entrances(self, host: Host) -> Iterator[tuple[int | None, Host | None]]:
        """Where packets to ``host`` enter the network: each switch, and the one host that sends from there.

        None in place of a switch stands for any, and in place of a host for several.
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
        """The rules that these ports need: by switch, and at every switch beside."""
        at: Counter[int] = Counter()
        everywhere = 0
        for host, ports in self.ports.items():
            for switch in (host.switch, *(switch for switch, _ in self.entrances(host))):
                if switch is None:
                    everywhere += len(ports)
                else:
                    at[switch] += len(ports)
        return at, everywhere

    def without(self, ends: Collection[tuple[str, int]]) -> Listening:
        """The same without some of the ports."""
        left = {
            host: tuple(port for port in ports if (host.address, port) not in ends)
            for host, ports in self.ports.items()
        }
        return self._replace(ports={host: ports for host, ports in left.items() if ports}, ends=self.ends - set(ends))


NOTHING = Listening({}, {}, frozenset())
Packets = tuple[str, str, int | None, int | None]
"""The fields that identify the packets of a flow: the first four of a ``RuleSite``."""


class Claimed(NamedTuple):
    """A job, its class, and its traffic: flows that it declares, its listening ports, and flows that were found."""

    job: Job
    service_class: int
    declared: tuple[RuleSite, ...]
    listening: Listening
    found: tuple[RuleSite, ...]


def claimed_flows(snapshot: Snapshot, classes: Mapping[str, int]) -> Iterator[Claimed]:
    """Every job with a class, its class, and its traffic. What two jobs claim goes to the one that came first.

    Traffic of a job without a class, and of hosts without an address, is left out. Raises ValueError for a class that
    the snapshot does not have.
    """
    taken: set[Packets] = set()
    ends: set[tuple[str, int]] = set()
    count = min(snapshot.classes, MAX_CLASSES)
    sites_of = places_on(snapshot.hosts)
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
                claimed = _one_of_equals(tuple(site for site in claimed if site[:4] not in taken))
            taken |= packets
            parts.append(claimed)
        listening = sites_of.listening(job.listeners)
        if not ends.isdisjoint(listening.ends):
            listening = listening.without(ends)
        ends |= listening.ends
        yield Claimed(job, service_class, parts[0], listening, parts[1])


class Places:
    """Where flows run between some hosts; remembered as long as a job's flows are the same object."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.items = tuple(hosts.items())
        self._hosts = dict(hosts)
        self._flows: Memo[tuple[Flow, ...], tuple[tuple[RuleSite, ...], frozenset[Packets]]] = Memo(_REMEMBERED_JOBS)
        self._listening: Memo[Listeners, Listening] = Memo(_REMEMBERED_JOBS)

    def flows(self, flows: tuple[Flow, ...]) -> tuple[tuple[RuleSite, ...], frozenset[Packets]]:
        """Returns the sites of a job's flows, each once, and their packets."""
        return self._flows.get(flows, lambda: self._find(flows))

    def listening(self, listeners: Listeners) -> Listening:
        """Returns the sites of a job's listening ports."""
        return self._listening.get(listeners, lambda: self._locate(listeners)) if listeners.ends else NOTHING

    def _find(self, flows: tuple[Flow, ...]) -> tuple[tuple[RuleSite, ...], frozenset[Packets]]:
        sites: dict[Packets, RuleSite] = {}
        for flow in flows:
            src, dst = self._hosts.get(flow.src), self._hosts.get(flow.dst)
            if src is None or dst is None or src.address is None or dst.address is None:
                continue
            packets = (src.address, dst.address, flow.src_port, flow.dst_port)
            sites.setdefault(packets, RuleSite(*packets, src.name, src.switch, in_port(src)))
        return tuple(sites.values()), frozenset(sites)

    def _locate(self, listeners: Listeners) -> Listening:
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
            frozenset((str(host.address), port) for host, members in ports.items() for port in members),
        )

    def _addressed(self, name: str) -> Host | None:
        host = self._hosts.get(name)
        return host if host is not None and host.address is not None else None


class _Latest:
    """The places between the sets of hosts that were asked for last."""

    places: ClassVar[tuple[Places, ...]] = ()


def places_on(hosts: Mapping[str, Host]) -> Places:
    """The places between these hosts: the same object while the hosts are equal."""
    items = tuple(hosts.items())
    for known in _Latest.places:
        if known.items == items:
            return known
    _Latest.places = (Places(hosts), *_Latest.places[:3])
    return _Latest.places[0]


def in_port(host: Host) -> int | None:
    """The port by which a host's packets enter its switch; None where either is not known."""
    return host.switch_port if host.switch is not None else None


@lru_cache(maxsize=16384)
def _one_of_equals(sites: tuple[RuleSite, ...]) -> tuple[RuleSite, ...]:
    """The very same object for equal places: what is made of them is remembered by it."""
    return sites

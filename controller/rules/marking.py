"""Computes the hosts' side of a plan: which outgoing traffic of a host gets which DSCP. Pure.

It handles the same traffic as the rule compiler, seen from the host that sends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

from controller.memo import Memo
from controller.model import ROCEV2_PORT, Snapshot
from controller.rules.sites import Listening, RuleSite, claimed_flows

MarkedProtocol = Literal["tcp", "udp", "any"]
"""What a host's packet filter can match: TCP and UDP, by ports, and all packets of IP."""

MAX_FOUND_MARKS = 1024
"""A host that does not know a job's sockets gets at most this many marks for connections that other hosts found."""


@dataclass(frozen=True, slots=True)
class FlowMark:
    """Outgoing packets of a host that get a DSCP; a part of None matches anything.

    The fields are those of ``wire.Mark`` and ``wire.ProtocolMark``. A mark of TCP without any part is for the packets
    that the job's own processes send; the host recognises them by itself.
    """

    job: str
    service_class: int
    dscp: int
    local_port: int | None
    remote: str | None
    remote_port: int | None
    protocol: MarkedProtocol = "tcp"


@dataclass(frozen=True, slots=True)
class PortMarks:
    """Marks for packets to any of the many listening ports of a job. All hosts of the job share one object.

    It stands for a ``FlowMark`` for each of ``ends``, which are IP addresses and ports.
    """

    job: str
    service_class: int
    dscp: int
    ends: tuple[tuple[str, int], ...]
    protocol: MarkedProtocol = "tcp"

    def each(self) -> Iterator[FlowMark]:
        """Yields one mark for each port."""
        for address, port in self.ends:
            yield FlowMark(self.job, self.service_class, self.dscp, None, address, port, self.protocol)


AnyMark = FlowMark | PortMarks


def marks(snapshot: Snapshot, classes: Mapping[str, int]) -> Mapping[str, tuple[AnyMark, ...]]:
    """Returns each sending host's marks, which give its jobs' traffic the DSCP of their class, or that of the job.

    The first matching mark decides, so the marks stand in the order of the switch's rules: a mark that names both ports
    goes before one that names the remote port, and that before one that names the local port. A host that knows a job's
    sockets by itself gets one mark for the whole job, before all others, and none for the job's discovered connections.
    Any other host gets at most MAX_FOUND_MARKS marks for those. Hosts without marks are left out. Raises ValueError for
    a class that the snapshot does not have.
    """
    marked: dict[str, list[AnyMark]] = {}
    count: Counter[str] = Counter()
    for job, service_class, declared, listening, discovered in claimed_flows(snapshot, classes):
        of_class = snapshot.code_points.classes[service_class]
        of_job = job.id, service_class, of_class if job.dscp is None else job.dscp
        for host in job.found_on:
            marked.setdefault(host, []).append(FlowMark(*of_job, None, None, None))
        others = [item for item in _marks_of(discovered, of_job) if item[0] not in job.found_on]
        for host, mark in chain(_marks_of(declared, of_job), others, *(_marks_of(each, of_job) for each in listening)):
            marked.setdefault(host, []).append(mark)
        for host, _ in others:
            count[host] += 1
    for host, more in count.items():
        if more > MAX_FOUND_MARKS:
            marked[host] = _fewer(marked[host])
    if any(host.name != host.server for host in snapshot.hosts.values()):
        # Each interface of a server sends to the same places, and a mark does not say which of them sends.
        marked = {host: list(dict.fromkeys(marks)) for host, marks in marked.items()}
    return {host: tuple(sorted(marks, key=_first_match)) for host, marks in sorted(marked.items())}


_Traffic = tuple[RuleSite, ...] | Listening
_OfJob = tuple[str, int, int]
"""A job, its class, and the DSCP of its packets."""
_HostMarks = tuple[tuple[str, AnyMark], ...]
"""Marks, each with the server that sets it."""
_remembered: Memo[_Traffic, dict[_OfJob, _HostMarks]] = Memo(32768)
_MOST_CLASSES = 2
"""Remember a job's marks of so many classes: there are thousands for a large job."""


def _marks_of(traffic: _Traffic, of_job: _OfJob) -> _HostMarks:
    """Returns the marks of a part of a job's traffic. They are remembered by it, because a plan changes few of them."""
    if not traffic:
        return ()
    by_class = _remembered.get(traffic, dict)
    found = by_class.get(of_job)
    if found is None:
        if len(by_class) >= _MOST_CLASSES:
            by_class.clear()
        made = _of_listening(traffic, of_job) if isinstance(traffic, Listening) else _of_flows(traffic, of_job)
        found = by_class[of_job] = tuple(made)
    return found


def _of_flows(sites: Iterable[RuleSite], of_job: _OfJob) -> Iterator[tuple[str, AnyMark]]:
    """Yields the marks of flows. RoCEv2 is marked as UDP: the host's kernel sends it, or nothing can mark it."""
    for site in sites:
        matched = site.src_port, site.dst, ROCEV2_PORT if site.protocol == "rocev2" else site.dst_port
        protocol: MarkedProtocol = "udp" if site.protocol == "rocev2" else site.protocol
        yield site.src_host, FlowMark(*of_job, *matched, protocol)


def _of_listening(listening: Listening, of_job: _OfJob) -> Iterator[tuple[str, AnyMark]]:
    """Yields the marks for packets from each host's own listening ports, and to all ports of the job."""
    protocol: MarkedProtocol = "udp" if listening.protocol == "udp" else "tcp"
    for host, ports in listening.ports.items():
        for port in ports:
            yield host.server, FlowMark(*of_job, port, None, None, protocol)
    to_all = PortMarks(*of_job, _sorted_ends(listening.ends), protocol)
    for server in _senders(listening):
        yield server, to_all


def _senders(listening: Listening) -> tuple[str, ...]:
    """Returns the servers that may send to listening ports."""
    return tuple(dict.fromkeys(host.server for hosts in listening.senders.values() for host in hosts))


@lru_cache(maxsize=256)
def _sorted_ends(ends: frozenset[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(ends))


def _fewer(marks: list[AnyMark]) -> list[AnyMark]:
    """Returns at most MAX_FOUND_MARKS of the marks that name both ports, because every packet is compared with each."""
    kept: list[AnyMark] = []
    left = MAX_FOUND_MARKS
    for mark in marks:
        if isinstance(mark, FlowMark) and mark.local_port is not None and mark.remote_port is not None:
            if left == 0:
                continue
            left -= 1
        kept.append(mark)
    return kept


_WHOLE, _TO_LISTENERS, _FROM_LISTENER, _ALL = 6, 3, 1, -1
_BY_PORTS = {(True, True): 5, (False, True): 4, (True, False): 2, (False, False): 0}
"""The rank of a mark by whether it names its local and its remote port; it equals the priority of the switch's rule."""


def _first_match(mark: AnyMark) -> tuple[int, str, int, str, int]:
    if isinstance(mark, PortMarks):
        return (-_TO_LISTENERS, "", 0, mark.job, 0)
    if mark.protocol == "any":
        return (-_ALL, mark.remote or "", 0, mark.job, 0)
    if mark.remote is None:
        return (-_WHOLE if mark.local_port is None else -_FROM_LISTENER, "", 0, mark.job, mark.local_port or 0)
    named = _BY_PORTS[mark.local_port is not None, mark.remote_port is not None]
    return (-named, mark.remote, mark.remote_port or 0, mark.job, mark.local_port or 0)

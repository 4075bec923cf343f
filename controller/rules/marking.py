"""Computes the hosts' side of a plan: which outgoing traffic of a host gets which DSCP. Pure.

It handles the same traffic as the rule compiler, seen from the host that sends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from controller.model import CLASS_DSCP, Snapshot
from controller.rules.sites import Listening, claimed_flows

MAX_FOUND_MARKS = 1024
"""A host that does not know a job's sockets gets at most this many marks for connections that other hosts found."""


@dataclass(frozen=True, slots=True)
class FlowMark:
    """Outgoing TCP packets of a host that get a DSCP; a part of None matches anything.

    The fields are those of ``wire.Mark``. A mark without any part is for the packets that the job's own processes
    send; the host recognises them by itself.
    """

    job: str
    service_class: int
    dscp: int
    local_port: int | None
    remote: str | None
    remote_port: int | None


@dataclass(frozen=True, slots=True)
class PortMarks:
    """Marks for packets to any of the many listening ports of a job. All hosts of the job share one object.

    It stands for a ``FlowMark`` for each of ``ends``, which are IPv4 addresses and TCP ports.
    """

    job: str
    service_class: int
    dscp: int
    ends: tuple[tuple[str, int], ...]

    def each(self) -> Iterator[FlowMark]:
        """Yields one mark for each port."""
        for address, port in self.ends:
            yield FlowMark(self.job, self.service_class, self.dscp, None, address, port)


AnyMark = FlowMark | PortMarks


def marks(snapshot: Snapshot, classes: Mapping[str, int]) -> Mapping[str, tuple[AnyMark, ...]]:
    """Returns each sending host's marks, which give its jobs' traffic the DSCP of their class.

    The first matching mark decides, so the marks stand in the order of the switch's rules: a mark that names both ports
    goes before one that names the remote port, and that before one that names the local port. A host that knows a job's
    sockets by itself gets one mark for the whole job, before all others, and none for the job's discovered connections.
    Any other host gets at most MAX_FOUND_MARKS marks for those. Hosts without marks are left out. Raises ValueError for
    a class that the snapshot does not have.
    """
    marked: dict[str, list[AnyMark]] = {}
    count: Counter[str] = Counter()
    for job, service_class, declared, listening, discovered in claimed_flows(snapshot, classes):
        dscp = CLASS_DSCP[service_class]
        for host in job.found_on:
            marked.setdefault(host, []).append(FlowMark(job.id, service_class, dscp, None, None, None))
        others = [site for site in discovered if site.src_host not in job.found_on]
        for site in (*declared, *others):
            mark = FlowMark(
                job=job.id,
                service_class=service_class,
                dscp=dscp,
                local_port=site.src_port,
                remote=site.dst,
                remote_port=site.dst_port,
            )
            marked.setdefault(site.src_host, []).append(mark)
        for site in others:
            count[site.src_host] += 1
        if listening.ends:
            _add_listeners(marked, job.id, service_class, listening)
    for host, more in count.items():
        if more > MAX_FOUND_MARKS:
            marked[host] = _fewer(marked[host])
    return {host: tuple(sorted(marks, key=_first_match)) for host, marks in sorted(marked.items())}


def _add_listeners(marked: dict[str, list[AnyMark]], job: str, service_class: int, listening: Listening) -> None:
    """Adds the marks for packets from each host's own listening ports of a job, and to all ports of the job."""
    dscp = CLASS_DSCP[service_class]
    for host, ports in listening.ports.items():
        own = marked.setdefault(host.name, [])
        own += [FlowMark(job, service_class, dscp, port, None, None) for port in ports]
    to_all = PortMarks(job, service_class, dscp, _sorted_ends(listening.ends))
    for hosts in listening.senders.values():
        for host in hosts:
            marked.setdefault(host.name, []).append(to_all)


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


_WHOLE, _TO_LISTENERS, _FROM_LISTENER = 6, 3, 1
_BY_PORTS = {(True, True): 5, (False, True): 4, (True, False): 2, (False, False): 0}
"""The rank of a mark by whether it names its local and its remote port; it equals the priority of the switch's rule."""


def _first_match(mark: AnyMark) -> tuple[int, str, int, str, int]:
    if isinstance(mark, PortMarks):
        return (-_TO_LISTENERS, "", 0, mark.job, 0)
    if mark.remote is None:
        return (-_WHOLE if mark.local_port is None else -_FROM_LISTENER, "", 0, mark.job, mark.local_port or 0)
    named = _BY_PORTS[mark.local_port is not None, mark.remote_port is not None]
    return (-named, mark.remote, mark.remote_port or 0, mark.job, mark.local_port or 0)

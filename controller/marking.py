"""The hosts' side of a plan: which outgoing traffic of a host gets which DSCP. Pure.

The counterpart of the rule compiler: the same flows, seen from the host that sends them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controller.model import CLASS_DSCP, Snapshot
from controller.rules import claimed_flows

MAX_FOUND_MARKS = 1024
"""Of connections that other hosts found, at a host that does not know the job's sockets itself."""


@dataclass(frozen=True, slots=True)
class FlowMark:
    """Outgoing TCP packets of a host that get a DSCP; a part of None matches anything. Fields as ``wire.Mark``.

    With no part at all: what the job's own processes send, which the host tells by itself.
    """

    job: str
    service_class: int
    dscp: int
    local_port: int | None
    remote: str | None
    remote_port: int | None


def marks(snapshot: Snapshot, classes: Mapping[str, int]) -> Mapping[str, tuple[FlowMark, ...]]:
    """Each sending host's marks: its jobs' flows with the DSCP of their class.

    In an order in which the first match decides as the switch's rules do: what names its remote port goes before
    what names its local port, and a flow with both before either. A host that knows a job's sockets by itself gets one
    mark for all that the job sends, before all others, and none for what was found; any other host gets at most
    MAX_FOUND_MARKS of those. Hosts without marks are left out. Raises ValueError for a class that the snapshot does not
    have.
    """
    marked: dict[str, list[FlowMark]] = {}
    count: Counter[str] = Counter()
    for job, service_class, declared, found in claimed_flows(snapshot, classes):
        dscp = CLASS_DSCP[service_class]
        for host in job.found_on:
            marked.setdefault(host, []).append(FlowMark(job.id, service_class, dscp, None, None, None))
        others = [place for place in found if place.src_host not in job.found_on]
        for place in (*declared, *others):
            mark = FlowMark(
                job=job.id,
                service_class=service_class,
                dscp=dscp,
                local_port=place.src_port,
                remote=place.dst,
                remote_port=place.dst_port,
            )
            marked.setdefault(place.src_host, []).append(mark)
        for place in others:
            count[place.src_host] += 1
    for host, more in count.items():
        if more > MAX_FOUND_MARKS:
            marked[host] = _fewer(marked[host])
    return {host: tuple(sorted(its, key=_first_match)) for host, its in sorted(marked.items())}


def _fewer(marks: list[FlowMark]) -> list[FlowMark]:
    """With MAX_FOUND_MARKS at most of those that name both ports: every packet is compared with each in turn."""
    kept, left = [], MAX_FOUND_MARKS
    for mark in marks:
        if mark.local_port is not None and mark.remote_port is not None:
            if left == 0:
                continue
            left -= 1
        kept.append(mark)
    return kept


def _first_match(mark: FlowMark) -> tuple[int, str, int, str, int]:
    named = 4 if mark.remote is None else 2 * (mark.remote_port is not None) + (mark.local_port is not None)
    return (-named, mark.remote or "", mark.remote_port or 0, mark.job, mark.local_port or 0)

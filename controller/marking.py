"""The hosts' side of a plan: which outgoing traffic of a host gets which DSCP. Pure.

The counterpart of the rule compiler: the same flows, seen from the host that sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.model import CLASS_DSCP, Snapshot
from controller.rules import claimed_flows


@dataclass(frozen=True, slots=True, order=True)
class FlowMark:
    """Outgoing TCP packets of a host that get a DSCP; a part of None matches anything. Fields as ``wire.Mark``."""

    job: str
    service_class: int
    dscp: int
    local_port: int | None
    remote: str
    remote_port: int | None


def marks(snapshot: Snapshot, classes: Mapping[str, int]) -> Mapping[str, tuple[FlowMark, ...]]:
    """Each sending host's marks: its jobs' flows with the DSCP of their class.

    In an order in which the first match decides as the switch's rules do: what names its remote port goes before
    what names its local port, and a flow with both before either. Hosts without marks are left out. Raises
    ValueError for a class that the snapshot does not have.
    """
    found: dict[str, list[FlowMark]] = {}
    for job, service_class, places in claimed_flows(snapshot, classes):
        for place in places:
            mark = FlowMark(
                job=job.id,
                service_class=service_class,
                dscp=CLASS_DSCP[service_class],
                local_port=place.src_port,
                remote=place.dst,
                remote_port=place.dst_port,
            )
            found.setdefault(place.src_host, []).append(mark)
    return {host: tuple(sorted(marks, key=_first_match)) for host, marks in sorted(found.items())}


def _first_match(mark: FlowMark) -> tuple[int, str, int, str, int]:
    named = 2 * (mark.remote_port is not None) + (mark.local_port is not None)
    return (-named, mark.remote, mark.remote_port or 0, mark.job, mark.local_port or 0)

"""How a switch numbers its queues, and the queues that a managed port gets. Pure.

Class k is queue k + 1; all other traffic is queue 0, which a switch also uses for packets that name none. As
``linux-htb`` serves the lower ``priority`` first and gives an unmentioned queue 0 the highest, queue 0 is always
made explicitly, as the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OTHER_QUEUE = 0
OTHER_PRIORITY = 7
KIND = "linux-htb"


def queue_of(service_class: int | None) -> int:
    """The queue number of a service class; None is all other traffic."""
    return OTHER_QUEUE if service_class is None else service_class + 1


def class_of(queue: int) -> int | None:
    """The service class of a queue number."""
    return None if queue == OTHER_QUEUE else queue - 1


def queue_ids(classes: int) -> range:
    """The queues that a port needs for ``classes`` job classes."""
    return range(classes + 1)


@dataclass(frozen=True, slots=True)
class PortQueues:
    """The queues of one port: its rate in bit/s, and each queue's ``other_config``, as Open vSwitch writes them."""

    rate: str
    queues: Mapping[int, Mapping[str, str]]


def port_queues(rate_bps: float, *, classes: int, job_floor: float, other_floor: float) -> PortQueues:
    """Strict priority among ``classes`` job classes and all other traffic, each with its floor, up to the rate."""
    rate = str(round(rate_bps))

    def queue(priority: int, floor: float) -> dict[str, str]:
        return {"priority": str(priority), "min-rate": str(max(1, round(rate_bps * floor))), "max-rate": rate}

    queues = {queue_of(k): queue(k, job_floor) for k in range(classes)}
    return PortQueues(rate, {OTHER_QUEUE: queue(OTHER_PRIORITY, other_floor), **queues})

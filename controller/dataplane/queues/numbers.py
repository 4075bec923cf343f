"""How a switch numbers its queues, and the queues that a managed port gets. Pure.

Class k is queue k + 1, unless ``numbers`` say which queues the classes have: those of the priorities that are lossless.
All other traffic is queue 0, which a switch also uses for packets without a queue. ``linux-htb`` serves the lower
``priority`` first, and would serve a queue 0 without one before all others. So queue 0 is always made explicitly, with
the lowest rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OTHER_QUEUE = 0
OTHER_PRIORITY = 7
KIND = "linux-htb"

QueueNumbers = tuple[int, ...]
"""The queue of each class; empty: they are in order from 1."""
IN_ORDER: QueueNumbers = ()


def queue_of(service_class: int | None, numbers: QueueNumbers = IN_ORDER) -> int:
    """Returns the queue number of a service class; None is all other traffic."""
    if service_class is None:
        return OTHER_QUEUE
    return numbers[service_class] if numbers else service_class + 1


def class_of(queue: int, numbers: QueueNumbers = IN_ORDER) -> int | None:
    """Returns the service class of a queue number; None is all other traffic. Raises ValueError where none has it."""
    if queue == OTHER_QUEUE:
        return None
    return numbers.index(queue) if numbers else queue - 1


def queue_ids(classes: int, numbers: QueueNumbers = IN_ORDER) -> tuple[int, ...]:
    """Returns the queues that a port needs for ``classes`` job classes, that of all other traffic first."""
    return tuple(queue_of(k, numbers) for k in (None, *range(classes)))


@dataclass(frozen=True, slots=True)
class PortQueues:
    """The queues of one port: its rate in bit/s, and each queue's ``other_config``, as Open vSwitch writes them."""

    rate: str
    queues: Mapping[int, Mapping[str, str]]


def port_queues(
    rate_bps: float, *, classes: int, job_floor: float, other_floor: float, numbers: QueueNumbers = IN_ORDER
) -> PortQueues:
    """Returns queues with strict priority among ``classes`` job classes and all other traffic.

    Each may use the port's whole rate. ``job_floor`` and ``other_floor`` are guaranteed shares of it.
    """
    rate = str(round(rate_bps))

    def queue(priority: int, floor: float) -> dict[str, str]:
        return {"priority": str(priority), "min-rate": str(max(1, round(rate_bps * floor))), "max-rate": rate}

    queues = {queue_of(k, numbers): queue(k, job_floor) for k in range(classes)}
    return PortQueues(rate, {OTHER_QUEUE: queue(OTHER_PRIORITY, other_floor), **queues})

"""What the configuration of a switch has to say, whatever system it runs: queues, their order and floors, ports. Pure.

A switch has eight queues, and serves the one with the highest number first. So class 0 has queue 7, the next classes
follow, and all other traffic has queue 0. Where RoCE has a lossless group, the network derives queues from the upper
three bits of the DSCP (IEEE 802.1Qbb pauses by priority), and classes share queues where their bits are alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Literal

from controller.code_points import CodePoints, precedence

TOP = 7
"""The queue that is served first."""
OTHER = 0
"""The queue of all traffic that belongs to no job."""
DSCPS = range(64)

MARK_FROM_BYTES = 150_000
MARK_ALL_BYTES = 1_500_000
"""The lossless queue marks no packet (ECN) below the first length, and each one from the second on. These are the
defaults of Cumulus Linux; which are right, the rate and the buffers of the switch decide."""

Kind = Literal["jobs", "notifications", "lossless", "other"]


class PlanError(Exception):
    """The settings name something that no static configuration can serve. The message is one line."""


@dataclass(frozen=True, slots=True)
class Lossless:
    """The DSCPs of RoCE, whose priority the network pauses and never drops, and of its congestion notifications."""

    roce: int
    notifications: int

    @property
    def priority(self) -> int:
        """The priority that carries PFC."""
        return precedence(self.roce)


ROCE = Lossless(26, 48)
"""The DSCPs that network interfaces give RoCEv2 and its CNP where nobody chooses others, and that the preset dcb leaves
to them."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of each port: its number, the DSCPs that lead to it, rising, and the share of the link that it keeps."""

    number: int
    kind: Kind
    dscps: tuple[int, ...]
    floor: float
    classes: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """What is in the queue, in words."""
        if self.kind != "jobs":
            return {
                "notifications": "congestion notifications of RoCE",
                "lossless": "RoCE, lossless",
                "other": "other traffic",
            }[self.kind]
        return f"class{'es' if len(self.classes) > 1 else ''} {' and '.join(map(str, self.classes))}"


@dataclass(frozen=True, slots=True)
class PlannedPort:
    """A port: its number in the settings, its name at the switch, what is behind it, its rate in bit/s, and whether the
    switch believes the DSCPs of what comes from there."""

    number: int
    name: str
    behind: str
    rate_bps: float
    is_trusted: bool

    def named(self, name: str) -> PlannedPort:
        """Returns the port with this name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class StaticPlan:
    """All that a configuration says. ``queues`` are in the order of service, so that other traffic has the last one."""

    queues: tuple[Queue, ...]
    ports: tuple[PlannedPort, ...]
    notes: tuple[str, ...] = ()

    @property
    def lossless(self) -> Queue | None:
        """The lossless queue; None where there is none."""
        return next((queue for queue in self.queues if queue.kind == "lossless"), None)

    @property
    def other(self) -> Queue:
        """The queue of all other traffic."""
        return self.queues[-1]

    @property
    def trusted(self) -> tuple[PlannedPort, ...]:
        """The ports whose DSCPs the switch believes. Only these may pause its lossless queue, too."""
        return tuple(port for port in self.ports if port.is_trusted)

    @property
    def untrusted(self) -> tuple[PlannedPort, ...]:
        """The ports whose DSCPs the switch does not believe."""
        return tuple(port for port in self.ports if not port.is_trusted)

    @property
    def unserved(self) -> tuple[int, ...]:
        """All DSCPs that other traffic has."""
        served = {dscp for queue in self.queues for dscp in queue.dscps}
        return tuple(dscp for dscp in DSCPS if dscp not in served)

    def dscps_by_queue(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yields the number of each queue with its DSCPs, so that each of the 64 is named once."""
        for queue in self.queues:
            yield queue.number, self.unserved if queue.kind == "other" else queue.dscps


def plan_queues(
    points: CodePoints, *, class_floor: float, other_floor: float, lossless: Lossless | None
) -> tuple[Queue, ...]:
    """Returns the queues, first served first. Raises PlanError.

    Floors are shares of a link. RoCE keeps as much as other traffic: a lossless queue that starves would stop its
    senders.
    """
    if lossless is not None and points.other in (lossless.roce, lossless.notifications):
        raise PlanError(f"dscp.other: DSCP {points.other} is RoCE's; other traffic must not be in its queue")
    numbers = [TOP - k for k in range(len(points.classes))] if lossless is None else _by_precedence(points, lossless)
    queues = [*_of_jobs(points, numbers, class_floor), Queue(OTHER, "other", (), other_floor)]
    if lossless is not None:
        queues.append(Queue(lossless.priority, "lossless", (lossless.roce,), other_floor))
        notified = lossless.notifications
        queues.append(Queue(precedence(notified), "notifications", (notified,), class_floor))
    total = sum(queue.floor for queue in queues)
    if total > 1:
        raise PlanError(
            f"floors: with RoCE's own queue they take {total:.2f} of a link; at most 1: lower floors.other or job_class"
        )
    return tuple(sorted(queues, key=lambda queue: -queue.number))


def strict_and_weighted(queues: Sequence[Queue]) -> tuple[tuple[Queue, ...], Mapping[int, int]]:
    """Returns the queues with strict priority, and the weight in percent of each other one by its number.

    This is for switches whose strict queues have no floor. A lossless queue must not starve there, so it and all below
    it have weights, each twice the next one's.
    """
    first = next(i for i, queue in enumerate(queues) if queue.kind in ("lossless", "other"))
    weighted = queues[first:]
    parts = [2 ** (len(weighted) - 1 - i) for i in range(len(weighted))]
    shares = [part * 100 // sum(parts) for part in parts]
    shares[0] += 100 - sum(shares)
    return tuple(queues[:first]), {queue.number: share for queue, share in zip(weighted, shares, strict=True)}


def whole_percents(queues: Sequence[Queue]) -> Mapping[int, int]:
    """Returns the floors in whole percent by the number of the queue, rounded up.

    What is above 100 for all together comes off the largest.
    """
    shares = {queue.number: max(1, ceil(round(100 * queue.floor, 6))) for queue in queues}
    for _ in range(sum(shares.values()) - 100):
        shares[max(shares, key=lambda number: shares[number])] -= 1
    return shares


def _of_jobs(points: CodePoints, numbers: Sequence[int], floor: float) -> Iterator[Queue]:
    served = points.served()
    for number in dict.fromkeys(numbers):
        classes = tuple(k for k, own in enumerate(numbers) if own == number)
        dscps = tuple(sorted(dscp for dscp, k in served.items() if k in classes))
        yield Queue(number, "jobs", dscps, floor * len(classes), classes)


def _by_precedence(points: CodePoints, lossless: Lossless) -> list[int]:
    """Returns the queue of each class. Raises PlanError where a class would share one with RoCE or other traffic."""
    taken = {
        lossless.priority: "RoCE",
        precedence(lossless.notifications): "RoCE's congestion notifications",
        OTHER: "other traffic",
    }
    numbers = [precedence(dscp) for dscp in points.classes]
    for k, number in enumerate(numbers):
        if number in taken:
            raise PlanError(
                f"dscp.classes: class {k} has DSCP {points.classes[k]}, in priority {number} of {taken[number]}; "
                "beside lossless groups take DSCPs from 8 to 23, 32 to 47 or from 56"
            )
    for k, (one, following) in enumerate(pairwise(numbers)):
        if following > one:
            raise PlanError(
                f"dscp.classes: class {k + 1} has priority {following}, above class {k} with {one}; "
                "beside lossless groups the DSCPs of later classes have no higher priority"
            )
    if points.acknowledgements is not None and precedence(points.acknowledgements) != numbers[0]:
        raise PlanError(
            f"dscp.acknowledgements: DSCP {points.acknowledgements} is not in priority {numbers[0]} of class 0; "
            "beside lossless groups it must be"
        )
    return numbers

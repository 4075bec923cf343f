"""What the wire carries for one bucket, and how long it takes: rounds of a ring, or to the parameter servers and
back. Pure.

[known] A ring of n sends 2 (n - 1) / n of the bytes over each link in 2 (n - 1) rounds (Patarasuk and Yuan, 2009).
[ours] A transfer takes its messages' fixed cost and latency, its bytes over the slowest link, and what a core works on
them, which copies and adds them up in between; it is no shorter than where no link is slower than the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from controller.wire import DemandSpec
from deepprophet.costs.calibration import Collective
from deepprophet.predict import network
from deepprophet.predict.network import NetworkSpec, Placement, Port

Architecture = Literal["ring", "ps"]
ARCHITECTURES: tuple[Architecture, ...] = ("ring", "ps")

NO_HOST = Collective(message=0.0, byte=0.0, processor_byte=0.0, low=1.0, high=1.0)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes that are on the wire together. ``links``: what it holds meanwhile; ``work``: seconds that a worker loses
    which computes meanwhile, where all cores compute.
    """

    seconds: float
    work: float
    demand: tuple[DemandSpec, ...]
    links: frozenset[Port]


Group = tuple[str, ...]
"""The hosts of workers that agree with each other, in the order of a ring."""


@dataclass(frozen=True)
class Wire:
    """How a job's processes exchange bytes. ``groups``: workers that hold the same part of a model, if not all do."""

    network: NetworkSpec
    placement: Placement
    architecture: Architecture
    host: Collective = NO_HOST
    groups: tuple[Group, ...] = ()

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """The groups that agree on gradients, all at the same time."""
        return self.groups or (self.placement.workers,)

    @property
    def workers(self) -> int:
        """How many agree on a gradient."""
        return len(self.all_groups[0])

    @cached_property
    def left_bps(self) -> dict[Port, float]:
        """What other jobs leave of each link."""
        return network.left_bps(self.network)

    def of_bucket(self, size: float) -> list[Transfer]:
        """The transfers that agree on a bucket, one after the other; none for a worker alone, which has nobody to
        ask.
        """
        if self.workers < 2 and self.architecture == "ring":
            return []
        if self.architecture == "ring":
            return [self.all_reduce(size, self.all_groups)]
        return [self._servers(size, to_server=True), self._servers(size, to_server=False)]

    def of_buffers(self, sizes: Sequence[int]) -> list[Transfer]:
        """What is not trained is told by the first worker to all before each forward pass, in a tree."""
        if self.workers < 2 or self.architecture != "ring":
            return []
        return [self._tree(size) for size in sizes]

    def all_reduce(self, size: float, groups: Sequence[Group]) -> Transfer:
        """The transfer after which each worker of a group has the sum of all its workers' bytes."""
        return self._rings(size, groups, 2)

    def all_gather(self, size: float, groups: Sequence[Group]) -> Transfer:
        """The transfer after which each worker has all ``size`` bytes, of which it had a part; or that adds up and
        leaves a part to each: a reduce-scatter sends as much.
        """
        return self._rings(size, groups, 1)

    def send(self, ends: Sequence[tuple[str, str]], size: float) -> Transfer:
        """The transfer of so many bytes from each first host to each second one."""
        return self._transfer([(src, dst, size) for src, dst in ends], 1, size)

    def _rings(self, size: float, groups: Sequence[Group], turns: int) -> Transfer:
        count = len(groups[0])
        each = turns * (count - 1) / count * size
        ends = [pair for group in groups for pair in zip(group, (*group[1:], group[0]), strict=True)]
        return self._transfer([(src, dst, each) for src, dst in ends], turns * (count - 1), each)

    def _servers(self, size: float, *, to_server: bool) -> Transfer:
        each = size / len(self.placement.ps)
        ends = [(worker, ps, each) for worker in self.placement.workers for ps in self.placement.ps]
        if not to_server:
            ends = [(ps, worker, part) for worker, ps, part in ends]
        # A server handles what all workers send, one after the other.
        return self._transfer(ends, 1, each * self.workers)

    def _tree(self, size: float) -> Transfer:
        rounds = math.ceil(math.log2(self.workers))
        edges = []
        for names in self.all_groups:
            for place in range(1, self.workers):
                parent = place - (1 << (place.bit_length() - 1))
                edges.append((names[parent], names[place], float(size)))
        transfer = self._transfer(edges, rounds, size * rounds)
        slowest = max((network.seconds(self.left_bps, [part]) for part in transfer.demand), default=0.0)
        fixed = rounds * (self.host.message + self.network.latency_seconds)
        return Transfer(max(transfer.seconds, fixed + rounds * slowest), transfer.work, transfer.demand, transfer.links)

    def _transfer(self, ends: Sequence[tuple[str, str, float]], rounds: int, handled: float) -> Transfer:
        demand = added([DemandSpec(src=src, dst=dst, bytes=size) for src, dst, size in ends if src != dst])
        wire = network.seconds(self.left_bps, demand)
        latency = self.network.latency_seconds if demand else 0.0
        worked = wire + handled * self.host.processor_byte
        seconds = rounds * (self.host.message + latency) + max(worked, handled * self.host.byte)
        links = frozenset(end for part in demand for end in ((part.src, True), (part.dst, False)))
        lost = self.host.processor_byte if self.host.lost_byte is None else self.host.lost_byte
        return Transfer(seconds, handled * lost, demand, links)


def added(demand: Sequence[DemandSpec]) -> tuple[DemandSpec, ...]:
    """One entry a pair of hosts."""
    sums: dict[tuple[str, str], float] = {}
    for part in demand:
        sums[part.src, part.dst] = sums.get((part.src, part.dst), 0.0) + part.bytes
    return tuple(DemandSpec(src=src, dst=dst, bytes=size) for (src, dst), size in sums.items() if size > 0)

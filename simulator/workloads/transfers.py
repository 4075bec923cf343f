"""What one iteration of a training job sends: parameter server, ring and tree all-reduce, as steps of a job.

A ring takes its 2 (n - 1) steps: each link sends a chunk of a n-th of the model in every step, as soon as its host has
received the chunk of the step before. A tree sends the model in ``TREE_CHUNKS`` chunks, as a pipelined library does: a
host sends a chunk up once it has that chunk of its children, and down once it has received it. A parameter server takes
all pushes, then serves all pulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from controller.model import Demand, Role, Task
from simulator.jobs import Compute, Step, Transfer

TREE_CHUNKS = 8
"""A tree pipelines the model in this many chunks."""

Architecture = Literal["ps", "ring", "tree"]
ARCHITECTURES: tuple[Architecture, ...] = ("ps", "ring", "tree")


def barrier_lane(
    architecture: Architecture, hosts: Sequence[str], model_bytes: float, compute: float
) -> tuple[Step, ...]:
    """One iteration with a barrier (BSP): compute, then all transfers. The first host is a ps job's server."""
    return (Compute(compute), *_transfers(architecture, hosts, model_bytes))


def worker_lanes(hosts: Sequence[str], model_bytes: float, computes: Sequence[float]) -> tuple[tuple[Step, ...], ...]:
    """A lane a worker of a parameter server, which is the first host: compute, push, pull. For SSP and ASP."""
    server, *workers = hosts
    return tuple(
        (
            Compute(compute),
            Transfer((Demand(worker, server, model_bytes),)),
            Transfer((Demand(server, worker, model_bytes),)),
        )
        for worker, compute in zip(workers, computes, strict=True)
    )


def tasks(architecture: Architecture, hosts: Sequence[str], port: int) -> tuple[Task, ...]:
    """The processes of a job; its parameter server listens on ``port``."""
    if architecture == "ps":
        return (Task(Role.PS, hosts[0], port), *(Task(Role.WORKER, host) for host in hosts[1:]))
    return tuple(Task(Role.PEER, host, port) for host in hosts)


def _transfers(architecture: Architecture, hosts: Sequence[str], model_bytes: float) -> tuple[Transfer, ...]:
    if architecture == "ps":
        server, *workers = hosts
        return (
            Transfer(tuple(Demand(worker, server, model_bytes) for worker in workers)),
            Transfer(tuple(Demand(server, worker, model_bytes) for worker in workers)),
        )
    return (ring(hosts, model_bytes) if architecture == "ring" else tree(hosts, model_bytes),)


def ring(hosts: Sequence[str], model_bytes: float) -> Transfer:
    """A ring all-reduce of n hosts: each link sends 2 (n - 1) chunks, each after its host has received the one before.

    P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009,
    doi:10.1016/j.jpdc.2008.09.002.
    """
    count = len(hosts)
    share = 2 * (count - 1) / count * model_bytes
    pairs = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
    before = tuple(((place - 1) % count,) for place in range(count))
    return Transfer(tuple(Demand(a, b, share) for a, b in pairs), after=before, chunks=2 * (count - 1), lag=1)


def tree(hosts: Sequence[str], model_bytes: float) -> Transfer:
    """An all-reduce over a binary tree, whose root is the first host: each chunk goes up, and its sum comes down."""
    up, down = tree_up(hosts, model_bytes), tree_down(hosts, model_bytes)
    first = len(up.flows)
    at_root = tuple(place for place, flow in enumerate(up.flows) if flow.dst == hosts[0])
    after_down = (tuple(first + place for place in after) or at_root for after in down.after)
    return replace(up, flows=(*up.flows, *down.flows), after=(*up.after, *after_down))


def tree_up(hosts: Sequence[str], model_bytes: float) -> Transfer:
    """The sum over a binary tree: a host sends a chunk to its parent once it has that chunk of both its children."""
    count = len(hosts)
    flows = tuple(Demand(hosts[child], hosts[(child - 1) // 2], model_bytes) for child in range(1, count))
    # The flow of host c has place c - 1.
    after = (tuple(child - 1 for child in (2 * host + 1, 2 * host + 2) if child < count) for host in range(1, count))
    return Transfer(flows, after=tuple(after), chunks=TREE_CHUNKS)


def tree_down(hosts: Sequence[str], model_bytes: float) -> Transfer:
    """The broadcast over a binary tree: a host sends a chunk to its children once it has it from its parent."""
    parents = [(child - 1) // 2 for child in range(1, len(hosts))]
    flows = tuple(Demand(hosts[parent], child, model_bytes) for parent, child in zip(parents, hosts[1:], strict=True))
    return Transfer(flows, after=tuple((parent - 1,) if parent else () for parent in parents), chunks=TREE_CHUNKS)

"""What one iteration of a training job sends: parameter server, ring and tree all-reduce, as steps of a job.

Fluid: what a library pipelines in chunks flows at once. A ring's 2 (n - 1) steps are one transfer of 2 (n - 1) / n of
the model a link, at one rate, that of its slowest link; a tree reduces up and broadcasts down, each in one transfer; a
parameter server takes all pushes, then serves all pulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from controller.model import Demand, Role, Task
from simulator.jobs import Compute, Step, Transfer

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
    if architecture == "ring":
        share = 2 * (len(hosts) - 1) / len(hosts) * model_bytes
        pairs = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
        return (Transfer(tuple(Demand(a, b, share) for a, b in pairs), coupled=True),)
    edges = [(hosts[child], hosts[(child - 1) // 2]) for child in range(1, len(hosts))]
    return (
        Transfer(tuple(Demand(child, parent, model_bytes) for child, parent in edges)),
        Transfer(tuple(Demand(parent, child, model_bytes) for child, parent in edges)),
    )

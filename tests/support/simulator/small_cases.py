"""Workloads small enough to be worked out by hand, and runs of them."""

from __future__ import annotations

from controller.model import Demand, Direction, Host, Ordering, Snapshot
from controller.policies.base import Policy
from controller.policies.fifo import Fifo
from simulator.engine import Limits, simulate
from simulator.jobs import SimJob, Transfer, Workload

SECOND = 125e6  # bytes that a port of 1 Gbit/s carries in a second
HOSTS = {name: Host(name) for name in "abcdef"}
OUT, IN = Direction.EGRESS, Direction.INGRESS


def transfer(*flows: tuple[str, str, float]) -> Transfer:
    return Transfer(tuple(Demand(src, dst, seconds * SECOND) for src, dst, seconds in flows))


def coflow(name: str, *flows: tuple[str, str, float], **fields) -> SimJob:
    return SimJob(id=name, lanes=((transfer(*flows),),), **fields)


def run(*jobs: SimJob, policy: Policy | None = None, **options):
    limits = {key: options.pop(key) for key in list(options) if key in Limits.__dataclass_fields__}
    return simulate(Workload("w", HOSTS, jobs), policy or Fifo(), Limits(**limits), **options)


def ends(*jobs: SimJob, **options) -> list[float]:
    return [job.end for job in run(*jobs, **options).jobs.values()]


class Spy(Policy):
    """Fair sharing that remembers what it was shown, and asks for targets."""

    name = "spy"

    def __init__(self, watch: float | None = None) -> None:
        self.shown: list[Snapshot] = []
        self.watch = watch

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.shown.append(snapshot)
        ids = tuple(job.id for job in snapshot.jobs)
        watch = {} if self.watch is None else dict.fromkeys(ids, self.watch)
        return Ordering(self.name, (ids,) if ids else (), dict.fromkeys(ids, "spied"), watch=watch)

    @property
    def times(self) -> list[float]:
        return [snapshot.now for snapshot in self.shown]

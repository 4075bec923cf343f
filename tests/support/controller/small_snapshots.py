"""Snapshots small enough that a policy's order is known."""

from __future__ import annotations

from controller.model import Demand, Host, Job, Ordering, Snapshot

HOSTS = {name: Host(name, 1e9, 1e9) for name in ("h1", "h2", "h3", "h4", "h5")}
SECOND = 125e6  # bytes that take a second of a 1 Gbit/s port


def job(name: str, seconds: float = 1.0, src: str = "h1", dst: str = "h2", **more) -> Job:
    return Job(id=name, demand=(Demand(src, dst, seconds * SECOND),) if seconds else (), **more)


def snapshot(*jobs: Job, now: float = 100.0, **more) -> Snapshot:
    return Snapshot(now=now, hosts=HOSTS, jobs=jobs, **more)


def ids(ordering: Ordering) -> list[str]:
    return [job for band in ordering.bands for job in band]

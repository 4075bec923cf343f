"""A registry to be told things, and what is told to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.journal.store import Store
from controller.model import Host
from controller.registry.registry import Change
from controller.wire import HostReport, JobSpec
from tests.support.controller.registry.unpaused import UnpausedRegistry

HOSTS = {f"h{i}": Host(f"h{i}", address=f"10.0.0.{i}") for i in range(1, 6)}


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class World:
    """A registry without a journal, a clock that stands still, and what was triggered."""

    def __init__(self, hosts: Mapping[str, Host] = HOSTS) -> None:
        self.clock = Clock()
        self.registry = UnpausedRegistry(hosts, Store(None), self.clock, lease_seconds=30.0)
        self.triggers: list[str] = []
        self.registry.subscribe(lambda reason, _received_at: self.triggers.append(reason))
        self.seq = 0

    def put(self, job: str = "a", **spec: Any) -> Change:
        return self.registry.put_job(job, job_spec(**spec), 0.0)

    def tell(self, host: str = "h1", jobs: Any = (), flows: Any = (), **parts: Any) -> Any:
        self.seq += 1
        body = {"session": "s", "seq": self.seq, "sent_at": self.clock.now, "jobs": list(jobs), "flows": list(flows)}
        return self.registry.report(host, HostReport.model_validate(body | parts), 0.0)

    def snapshot(self) -> Any:
        return self.registry.snapshot(self.clock.now, classes=7, period=5.0)


def job_spec(port: int | None = 5000, **parts: Any) -> JobSpec:
    body: dict[str, Any] = {
        "tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}],
        "iterations": 100.0,
    }
    return JobSpec.model_validate(body | parts)


def progress(job: str = "a", *points: tuple[float, float | None], **parts: Any) -> dict[str, Any]:
    return {"job": job, "points": [{"iteration": k, "time": k, "metric": m} for k, m in points]} | parts

"""A journal with a registry that has something to keep."""

from __future__ import annotations

from pathlib import Path

from controller.journal.store import Store
from controller.model import Host
from controller.wire import HostReport, JobSpec
from tests.support.controller.registry.unpaused import UnpausedRegistry, commit

HOSTS = {name: Host(name) for name in ("h1", "h2")}
SPEC = JobSpec.model_validate(
    {"tasks": [{"role": "ps", "host": "h1", "port": 5000}, {"role": "worker", "host": "h2"}], "stage": "s1"}
)


def report(seq: int, count: int = 3) -> HostReport:
    points = [{"iteration": float(seq * 10 + i), "time": float(i), "metric": 0.5} for i in range(count)]
    seen = {"job": "a", "flow": {"src": "h1", "dst": "h2", "dst_port": 9}}
    part = {"job": "a", "points": points, "sent_bytes": float(seq)}
    return HostReport.model_validate({"session": "s", "seq": seq, "sent_at": 0.0, "jobs": [part], "flows": [seen]})


def filled(store: Store) -> UnpausedRegistry:
    registry = UnpausedRegistry(HOSTS, store, lambda: 1000.0)
    registry.put_job("a", SPEC, 0.0)
    registry.report("h1", report(1), 0.0)
    return registry


def view(registry: UnpausedRegistry) -> object:
    return registry.snapshot(1000.0, classes=7, period=1.0), tuple(registry.job_states({}))


def written(path: Path) -> None:
    store = Store(path)
    filled(store)
    commit(store)
    store.close()

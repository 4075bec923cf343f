"""A running control loop over a network in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import eventlet

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.dataplane.values import Applied, SwitchStatus
from controller.enrolment.enrolments import Enrolments
from controller.enrolment.listed import Listed
from controller.journal.store import Store
from controller.journal.writer import Journal
from controller.loop.host_changes import HostChanges
from controller.loop.loop import Loop
from controller.loop.metrics import Metrics, counted
from controller.model import Snapshot, Switch
from controller.rules.rule import Match, Rule, Table
from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.registry.unpaused import UnpausedRegistry


class MemoryNetwork:
    """A network of one switch whose table is a set; it can refuse, and it can be slow."""

    def __init__(self) -> None:
        self.held: frozenset[Rule] = frozenset()
        self.applied: list[frozenset[Rule]] = []
        self.gates = 0
        self.is_paused = False
        self.refusal: Exception | str | None = None
        self.listeners: list[Callable[[str], None]] = []

    def switches(self) -> tuple[Switch, ...]:
        return (Switch(1),)

    def apply(self, rules: frozenset[Rule]) -> Applied:
        if isinstance(self.refusal, Exception):
            raise self.refusal
        if self.refusal is not None:
            return Applied(0, (self.refusal,))
        changes = len(self.held ^ rules)
        self.held = rules
        self.applied.append(rules)
        return Applied(changes)

    def renew_gates(self) -> int:
        self.gates += not self.is_paused
        return int(not self.is_paused)

    def set_paused(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    def subscribe(self, listener: Callable[[str], None]) -> None:
        self.listeners.append(listener)

    def status(self) -> tuple[SwitchStatus, ...]:
        return ()

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        return {}

    def port_bytes(self, *, anew: bool = True) -> dict[tuple[int, int], dict[int | None, int]]:
        return {}

    def received_bytes(self) -> dict[tuple[int, int], int]:
        return {}


def one_rule_a_job(_snapshot: Snapshot, classes: Mapping[str, int]) -> frozenset[Rule]:
    return frozenset(Rule(1, Table.CLASSIFY, 10 + k, Match(), job=job) for job, k in classes.items())


class Yard:
    """A running loop over a network in memory."""

    def __init__(self, journal: Path | None = None, **settings: Any) -> None:
        hosts = [{"name": f"h{i}", "address": f"10.0.0.{i}"} for i in (1, 2, 3)]
        body = {
            "hosts": hosts,
            "policy": "fifo",
            "period_seconds": 60.0,
            "gate_seconds": 121,
            "lease_seconds": 60.0,
        } | settings
        self.config = Config.model_validate(body)
        self.store = Store(journal)
        enrolments = Enrolments(self.store, time.time, time.monotonic)
        self.current = CurrentSettings(self.config, lambda config: enrolments.hosts(Listed.of(config)))
        self.registry = UnpausedRegistry(self.current.hosts, self.store, time.time, points=self.config.code_points)
        self.network = MemoryNetwork()
        self.metrics = Metrics()
        self.loop = Loop(
            self.registry, self.network, self.current, self.store, self.metrics, compile_rules=one_rule_a_job
        )
        self.journal = Journal(self.store)
        self.hosts = HostChanges(enrolments, self.registry, self.current, self.loop)

    def start(self) -> Yard:
        self.journal.start()
        self.loop.start()
        wait_until(lambda: self.loop.snapshot is not None, sleep=eventlet.sleep)
        return self

    def start_refused(self) -> Yard:
        """Start over a network that refuses the first plan."""
        self.journal.start()
        self.loop.start()
        wait_until(lambda: self.loop.failure is not None, sleep=eventlet.sleep)
        return self

    def stop(self) -> None:
        self.loop.stop()
        self.journal.stop()

    def put(self, job: str, port: int, host: str = "h1") -> None:
        spec = {"tasks": [{"role": "ps", "host": host, "port": port}, {"role": "worker", "host": "h2"}]}
        self.registry.put_job(job, JobSpec.model_validate(spec), time.monotonic())

    def plans(self) -> int:
        return int(counted(self.metrics.plans))

"""The loop: from a trigger, or the period's end, to a plan that is in force.

Triggers that come within ``COALESCE_SECONDS`` share a plan. A plan is made in another thread, so that requests are
answered meanwhile. Whatever fails is logged with its cause and counted; the last good plan stays in force, and
the next turn tries again. Latencies are measured by the monotonic clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import eventlet
import eventlet.event
import eventlet.tpool

from controller.classes import Assign
from controller.config import Config
from controller.dataplane.values import Applied, SwitchStatus
from controller.host_plans import HostPlans
from controller.marking import FlowMark, marks
from controller.metrics import Metrics
from controller.model import Snapshot, Switch
from controller.plan_journal import ID, KIND, from_record, to_record
from controller.planner import CompileRules, Plan, plan
from controller.policies._base import Policy
from controller.registry import Registry
from controller.rules import Rule
from controller.settings import RunSettings
from controller.store import Batch, Store, put
from controller.wire import Settings

LOG = logging.getLogger("trainyard.loop")
COALESCE_SECONDS = 0.01
PERIODIC = "period"
SWITCHES = "switch"


class Network(Protocol):
    """What the loop needs of the dataplane; see ``controller.dataplane.plane.Dataplane``."""

    def switches(self) -> tuple[Switch, ...]:
        """The switches that are proven."""

    def apply(self, rules: frozenset[Rule]) -> Applied:
        """Make them hold exactly these rules."""

    def renew_gates(self) -> int:
        """Keep their gates open; how many."""

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Tell of switches that come and go."""

    def status(self) -> tuple[SwitchStatus, ...]:
        """Every switch."""

    def class_bytes(self) -> dict[tuple[int, int | None], int]:
        """Bytes by switch and class."""


class Loop:
    """Keeps the network and the hosts' plans equal to what the policy says. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        registry: Registry,
        dataplane: Network,
        config: Config,
        store: Store,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.time,
        compile_rules: CompileRules,
    ) -> None:
        self._registry = registry
        self._dataplane = dataplane
        self._config = config
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._compile = compile_rules
        self.settings = RunSettings(config, store)
        registry.period_seconds = self.settings.period_seconds
        record = store.contents().records.get(KIND, {}).get(ID)
        self.plan: Plan | None = from_record(record) if record is not None else None
        self.snapshot: Snapshot | None = None
        self.epoch: int = record["epoch"] if record is not None else 0
        self.host_plans = HostPlans(config, record["host_epochs"] if record is not None else {})
        self.failure: str | None = None
        self._triggers: list[tuple[str, float]] = []
        self._wake = eventlet.event.Event()
        self._period_changed = eventlet.event.Event()
        self._threads: list[eventlet.greenthread.GreenThread] = []
        store.add_source(self._dump)
        registry.subscribe(self.trigger)
        dataplane.subscribe(lambda _reason: self.trigger(SWITCHES, time.monotonic()))

    def start(self) -> None:
        """Make a first plan at once, then go on until ``stop``."""
        self._threads = [eventlet.spawn(self._run), eventlet.spawn(self._keep_gates)]

    def stop(self) -> None:
        """Stop; what is in force stays in force."""
        for thread in self._threads:
            thread.kill()
        self._threads = []

    def trigger(self, reason: str, received_at: float) -> None:
        """Ask for a plan soon. ``received_at``: when its cause arrived, by ``time.monotonic``."""
        self._triggers.append((reason, received_at))
        if not self._wake.ready():
            self._wake.send()

    def change(self, wanted: Settings, received_at: float) -> Settings:
        """Change settings, and plan by them at once; raises Invalid, and then changes nothing."""
        if self.settings.change(wanted):
            self._registry.period_seconds = self.settings.period_seconds
            changed, self._period_changed = self._period_changed, eventlet.event.Event()
            changed.send()
            self.trigger("settings", received_at)
        return self.settings.view()

    def dry_run(self, policy: Policy) -> tuple[Plan, Snapshot]:
        """What ``policy`` would do now; nothing is applied. Raises whatever the policy raises."""
        snapshot = self._take_snapshot()
        made: Plan = eventlet.tpool.execute(plan, snapshot, self.plan, policy=policy, assign=self._config.assign)
        return made, snapshot

    def now(self) -> float:
        """Seconds since the epoch, by the controller's clock."""
        return self._clock()

    @property
    def classes(self) -> Mapping[str, int]:
        """The classes in force; empty before the first plan."""
        return self.plan.classes if self.plan is not None else {}

    def _take_snapshot(self) -> Snapshot:
        self._registry.expire()
        return self._registry.snapshot(
            self._clock(),
            classes=self._config.classes,
            period=self.settings.period_seconds,
            switches=self._dataplane.switches(),
        )

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            try:
                with eventlet.Timeout(max(0.0, due - time.monotonic()), False):
                    self._wake.wait()
                if self._triggers:
                    eventlet.sleep(COALESCE_SECONDS)
                self._wake = eventlet.event.Event()
                causes, self._triggers = self._triggers, []
                if time.monotonic() >= due:
                    due = time.monotonic() + self.settings.period_seconds
                    causes.append((PERIODIC, 0.0))
                due = min(due, time.monotonic() + self.settings.period_seconds)
                if causes:
                    self._turn(causes)
                    self._say(None)
            except Exception as error:  # a policy's or a switch's fault must not end the loop
                self._metrics.plan_errors.inc()
                self._say(f"{type(error).__name__}: {error}", error)

    def _turn(self, causes: list[tuple[str, float]]) -> None:
        began = time.monotonic()
        snapshot = self._take_snapshot()
        new, new_marks = eventlet.tpool.execute(
            _plan_and_mark, snapshot, self.plan, self.settings.policy, self._compile, self._config.assign
        )
        self._metrics.plan_seconds.observe(time.monotonic() - began)
        is_other = (
            self.plan is None or new.classes != self.plan.classes or new.ordering.policy != self.plan.ordering.policy
        )
        self.plan, self.snapshot = new, snapshot
        self.epoch += is_other
        self._registry.set_watch(new.ordering.watch, snapshot.now)
        try:
            applied = self._dataplane.apply(new.rules)
            self._measure(causes, applied)
        finally:
            # The hosts after the switches: a dozen answers to waiting agents must not stand before the barrier's reply.
            self.host_plans.update(new.ordering.policy, new_marks)
            self._store.put(KIND, ID, to_record(new, self.epoch, self.host_plans.record()))
        if applied.errors:
            raise SwitchError("; ".join(applied.errors))

    def _measure(self, causes: list[tuple[str, float]], applied: Applied) -> None:
        now = time.monotonic()
        for reason, received_at in causes:
            self._metrics.plans.labels(cause=reason).inc()
            if reason in (PERIODIC, SWITCHES):
                continue
            self._metrics.report_to_plan.add(now - received_at)
            if applied.flow_mods:
                self._metrics.report_to_rule.add(now - received_at)
        self._metrics.flow_mods.inc(applied.flow_mods)
        self._metrics.apply_errors.inc(len(applied.errors))
        self._metrics.jobs.set(len(self.classes))

    def _keep_gates(self) -> None:
        while True:
            try:
                self._metrics.gate_renewals.inc(self._dataplane.renew_gates())
            except Exception as error:  # one switch's fault must not close the gates of the others
                self._metrics.gate_errors.inc()
                LOG.error("the gates could not be renewed: %s: %s", type(error).__name__, error)
            with eventlet.Timeout(self.settings.period_seconds, False):
                self._period_changed.wait()

    def _say(self, failure: str | None, error: Exception | None = None) -> None:
        """Log a failure once, not every period; and its end."""
        if failure is not None and failure != self.failure:
            trace = error if not isinstance(error, SwitchError) else None
            LOG.error("the plan could not be made or applied, the last one stays: %s", failure, exc_info=trace)
        elif failure is None and self.failure is not None:
            LOG.info("plans are made and applied again")
        self.failure = failure

    def _dump(self, batch: Batch) -> None:
        if self.plan is not None:
            put(batch, KIND, ID, to_record(self.plan, self.epoch, self.host_plans.record()))


Marks = Mapping[str, tuple[FlowMark, ...]]


def _plan_and_mark(
    snapshot: Snapshot, previous: Plan | None, policy: Policy, compile_rules: CompileRules, assign: Assign
) -> tuple[Plan, Marks]:
    made = plan(snapshot, previous, policy=policy, compile_rules=compile_rules, assign=assign)
    return made, marks(snapshot, made.classes)


class SwitchError(RuntimeError):
    """A switch refused a change; the message names it."""

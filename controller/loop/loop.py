"""The control loop: from a trigger, or the end of the period, to a plan that is in force.

Triggers that come within ``COALESCE_SECONDS`` share a plan. A plan is made in another thread, so that requests are
answered meanwhile. Whatever fails is logged with its cause and counted; the last good plan stays in force, and
the next turn tries again. Latencies are measured by the monotonic clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

import eventlet
import eventlet.event

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.dataplane.values import Applied
from controller.endpoints.servers import Servers
from controller.journal.store import Batch, Store, put
from controller.loop.gates import Gates
from controller.loop.host_plans import HostPlans
from controller.loop.latencies import Latencies
from controller.loop.metrics import Metrics
from controller.loop.network import Network
from controller.loop.plan_record import ID, KIND, REFUSED_ID, read_last, to_text
from controller.loop.planning import HostSides, Planning
from controller.loop.run_settings import RunSettings, policy_field
from controller.model import Snapshot
from controller.pieces import Steps
from controller.planner import CompileRules, Plan
from controller.policies.base import Policy
from controller.refusals import Invalid
from controller.registry.registry import Registry
from controller.registry.triggers import Trigger
from controller.steps import in_steps
from controller.wire import Settings

LOG = logging.getLogger("trainyard.loop")
COALESCE_SECONDS = 0.01
"""Wait this long after a trigger for others, which then share the plan."""


class Loop:
    """Keeps the network and the hosts' plans equal to what the policy says. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        registry: Registry,
        dataplane: Network,
        current: CurrentSettings,
        store: Store,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.time,
        compile_rules: CompileRules,
    ) -> None:
        self._registry = registry
        self._dataplane = dataplane
        self._current = current
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self.settings = RunSettings(current.config, store)
        registry.period_seconds = self.settings.period_seconds
        last = read_last(store)
        self.plan: Plan | None = last.plan() if last is not None else None
        self.planning = Planning(registry, dataplane, current, self.settings, clock=clock, compile_rules=compile_rules)
        # The policy goes on from the newest plan: its memory holds time, and some switches hold this plan.
        refused = read_last(store, REFUSED_ID)
        self.planning.made = refused.plan() if refused is not None else self.plan
        self.snapshot: Snapshot | None = None
        self.epoch: int = last.epoch if last is not None else 0
        self.host_plans = HostPlans(current, last.host_epochs if last is not None else {})
        self._pause()
        self.failure: str | None = None
        self.refusals: tuple[str, ...] = ()
        """Why switches refused a plan that is newer than the one in force; empty: there is no such plan."""
        self._triggers: list[tuple[str, float]] = []
        self._latencies = Latencies(metrics)
        self._wake = eventlet.event.Event()
        self._gates = Gates(dataplane, lambda: self.settings.period_seconds, metrics)
        self._threads: list[eventlet.greenthread.GreenThread] = []
        self._listeners: list[Callable[[], None]] = []
        store.add_source(self._dump)
        registry.subscribe(self.trigger)
        dataplane.subscribe(lambda _reason: self.trigger(Trigger.SWITCH, time.monotonic()))

    def start(self) -> None:
        """Make a first plan at once, then go on until ``stop``."""
        self._threads = [eventlet.spawn(self._run), eventlet.spawn(self._gates.run)]

    def stop(self) -> None:
        """Stop; the plan in force stays in force."""
        for thread in self._threads:
            thread.kill()
        self._threads = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each turn, whether its plan is in force or refused, and after other settings.

        The loop waits for it, so it must be quick.
        """
        self._listeners.append(listener)

    def trigger(self, reason: str, received_at: float) -> None:
        """Ask for a plan soon. ``received_at``: when the trigger arrived, by ``time.monotonic``."""
        self._triggers.append((reason, received_at))
        if not self._wake.ready():
            self._wake.send()

    def change(self, wanted: Settings, received_at: float) -> Settings:
        """Change settings, and plan by them at once. Where it raises Invalid, nothing has changed."""
        if wanted.policy is not None or wanted.policy_options is not None:
            self._try(self.settings.policy_of(wanted), policy_field(wanted))
        if self.settings.change(wanted):
            self._follow_settings()
            self.trigger(Trigger.SETTINGS, received_at)
        return self.settings.view()

    def prepare(self, config: Config) -> Callable[[], None]:
        """Returns what makes the loop follow a changed settings file. Raises Invalid, and then nothing has changed."""
        settings = self.settings.of_file(config)
        policy = self.settings.policy_of(settings)
        self._try(policy, "policy")

        def follow() -> None:
            self.settings.follow_file(config, policy)
            self.planning.budget.budget = config.table_budget
            self._follow_settings()
            self.trigger(Trigger.SETTINGS, time.monotonic())

        return follow

    def between_plans(self, act: Callable[[], None]) -> None:
        """Call ``act`` while no plan is being made. Raises what it raises."""
        self.planning.between_plans(act)

    def _follow_settings(self) -> None:
        self._registry.period_seconds = self.settings.period_seconds
        self._pause()
        self._gates.wake()
        self._tell()

    def _pause(self) -> None:
        """Hand on whether all is paused. The gates follow when they are woken next."""
        is_paused = self.settings.is_paused
        self._dataplane.set_paused(is_paused)
        self.host_plans.set_paused(is_paused or not self._current.config.enforcement.hosts)

    def _try(self, policy: Policy, field: str) -> None:
        """Raises Invalid, with ``field``, for a policy that would stop every plan: it fails on what is known now."""
        try:
            self.planning.dry_run(policy)
        except Exception as error:
            problem = f"policy {policy.name} fails on the present jobs: {type(error).__name__}: {error}"
            raise Invalid([(field, problem)]) from error

    def now(self) -> float:
        """Returns seconds since the epoch, by the controller's clock."""
        return self._clock()

    @property
    def classes(self) -> Mapping[str, int]:
        """The classes in force; empty before the first plan."""
        return self.plan.classes if self.plan is not None else {}

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            triggers: list[tuple[str, float]] = []
            try:
                with eventlet.Timeout(max(0.0, due - time.monotonic()), False):
                    self._wake.wait()
                if self._triggers:
                    eventlet.sleep(COALESCE_SECONDS)
                self._wake = eventlet.event.Event()
                triggers, self._triggers = self._triggers, []
                if time.monotonic() >= due:
                    due = time.monotonic() + self.settings.period_seconds
                    triggers.append((Trigger.PERIOD, 0.0))
                due = min(due, time.monotonic() + self.settings.period_seconds)
                if triggers:
                    self._turn(triggers)
                    self._say(None)
            except Exception as error:  # a policy's or a switch's fault must not end the loop
                self._metrics.plan_errors.inc()
                self._latencies.keep(triggers)
                self._say(f"{type(error).__name__}: {error}", error)

    def _turn(self, triggers: list[tuple[str, float]]) -> None:
        planned = self.planning.make_next()
        snapshot, new, sides = planned.snapshot, planned.plan, planned.sides
        self._metrics.plan_seconds.observe(time.monotonic() - planned.began)
        self._registry.set_watch(new.ordering.watch, snapshot.now)
        try:
            applied = self._dataplane.apply(new.rules)
        except Exception as error:
            self.refusals = (f"{type(error).__name__}: {error}",)
            raise
        # The hosts come after the switches: answers to waiting agents must not delay the barrier's reply.
        if applied.errors:
            self._latencies.measure(triggers, applied)
            self._hold_back(new, sides, snapshot, applied)
            raise SwitchError("; ".join(applied.errors))
        self._latencies.measure(triggers, applied)
        self._put_in_force(new, sides, snapshot)

    def _put_in_force(self, new: Plan, sides: HostSides, snapshot: Snapshot) -> None:
        """Put a plan in force that every switch has applied: the hosts mark by it, and a restart begins with it."""
        old = self.plan
        self.epoch += old is None or new.classes != old.classes or new.ordering.policy != old.ordering.policy
        self.plan, self.snapshot, self.refusals = new, snapshot, ()
        self.host_plans.update(new.ordering.policy, sides.marks, jobs=sides.jobs, degraded=snapshot.degraded)
        self._store.put(KIND, ID, in_steps(self._record(new)))
        self._store.remove(KIND, REFUSED_ID)

    def _hold_back(self, new: Plan, sides: HostSides, snapshot: Snapshot, applied: Applied) -> None:
        """Handle a plan that a switch has refused: the last plan that all switches applied stays in force.

        Both ends of a link must serve the same order. So the hosts at switches that applied the new plan mark by it,
        and all others by the plan in force.
        """
        self.refusals = applied.errors
        self._store.put(KIND, REFUSED_ID, in_steps(self._record(new)))
        accepting = {change.dpid for change in applied.per_switch if not change.errors}
        followers = {host.server for host in snapshot.hosts.values() if host.switch in accepting}
        if followers:
            self.host_plans.update(
                new.ordering.policy, sides.marks, followers, jobs=sides.jobs, degraded=snapshot.degraded
            )
        if self.plan is not None:
            known = {job: k for job, k in self.plan.classes.items() if k < snapshot.classes}
            old = self.planning.sides_of(snapshot, known)
            others = Servers(snapshot.hosts).keys() - followers
            self.host_plans.update(self.plan.ordering.policy, old.marks, others, jobs=old.jobs)
            self._store.put(KIND, ID, in_steps(self._record(self.plan)))

    def _say(self, failure: str | None, error: Exception | None = None) -> None:
        """Log a failure once, not in every period, and log its end."""
        if failure is not None and failure != self.failure:
            trace = error if not isinstance(error, SwitchError) else None
            LOG.error("the plan could not be made or applied, the last one stays: %s", failure, exc_info=trace)
        elif failure is None and self.failure is not None:
            LOG.info("plans are made and applied again")
        self.failure = failure
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _record(self, recorded: Plan) -> Steps[str]:
        return to_text(recorded, self.host_plans.record(), self.epoch)

    def _dump(self, batch: Batch) -> Steps[None]:
        if self.plan is not None:
            put(batch, KIND, ID, (yield from self._record(self.plan)))
        made = self.planning.made
        if made is not None and made is not self.plan:
            put(batch, KIND, REFUSED_ID, (yield from self._record(made)))


class SwitchError(RuntimeError):
    """A switch refused a change; the message names it."""

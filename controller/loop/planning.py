"""Plans of what is known now: one at a time, each in another thread, so that requests are answered meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import eventlet.tpool

from controller.config.current import CurrentSettings
from controller.enforcement import Mode
from controller.loop.exclusive import Exclusive
from controller.loop.network import Network
from controller.loop.run_settings import RunSettings
from controller.model import Snapshot
from controller.ordering.classes import Assign
from controller.planner import CompileRules, Plan, plan
from controller.policies.base import Policy
from controller.registry.registry import Registry
from controller.rules.fabric import routes
from controller.rules.marking import AnyMark, marks
from controller.rules.own_dscps.host_jobs import HostJobs, host_jobs
from controller.rules.table_budget import Fitted, Step, TableBudget
from controller.steps import in_steps

LOG = logging.getLogger("trainyard.loop")


class HostSides(NamedTuple):
    """The hosts' sides of a plan: their marks, and their jobs that have DSCPs of their own."""

    marks: Mapping[str, tuple[AnyMark, ...]]
    jobs: HostJobs

    @classmethod
    def of(cls, snapshot: Snapshot, classes: Mapping[str, int]) -> HostSides:
        """Returns what hosts do with these classes."""
        return cls(marks(snapshot, classes), host_jobs(snapshot, classes))


class Planned(NamedTuple):
    """When a plan was begun, by ``time.monotonic``, its snapshot, how its flows fit, the plan, and the hosts' sides."""

    began: float
    snapshot: Snapshot
    fitted: Fitted
    plan: Plan
    sides: HostSides


class Planning:
    """Makes plans of what ``registry`` knows, for the switches of ``network``. ``clock``: seconds since the epoch.

    The policy goes on from ``made``, the newest plan; None: there is none. ``fitted`` says how the flows of the newest
    plan fit into the switches' tables.
    """

    def __init__(
        self,
        registry: Registry,
        network: Network,
        current: CurrentSettings,
        settings: RunSettings,
        *,
        clock: Callable[[], float],
        compile_rules: CompileRules,
    ) -> None:
        self._registry = registry
        self._network = network
        self._current = current
        self._settings = settings
        self._clock = clock
        self._compile = compile_rules
        self._exclusive = Exclusive()
        self.budget = TableBudget(current.config.table_budget)
        self.made: Plan | None = None
        self.fitted: Fitted | None = None

    def dry_run(
        self, policy: Policy, change: Callable[[Snapshot], Snapshot] = lambda known: known
    ) -> tuple[Plan, Snapshot]:
        """Returns the plan that ``policy`` would make now, and its snapshot. Raises what the policy raises.

        ``change`` returns what the plan is made of, from what is known. It is pure.
        """

        def act() -> tuple[Plan, Snapshot]:
            snapshot = change(self._take_snapshot())
            made: Plan = eventlet.tpool.execute(
                plan, snapshot, self.made, policy=policy, assign=self._current.config.assign
            )
            return made, snapshot

        return self._exclusive.run(act)

    def dry_run_of(self, known: Snapshot, previous: Plan, policy: Policy) -> Plan:
        """Returns the plan that ``policy`` makes of ``known`` after ``previous``. Raises what the policy raises."""

        def act() -> Plan:
            made: Plan = eventlet.tpool.execute(
                plan, known, previous, policy=policy, assign=self._current.config.assign
            )
            return made

        return self._exclusive.run(act)

    def sides_of(self, known: Snapshot, classes: Mapping[str, int]) -> HostSides:
        """Returns what hosts do with these classes. It is computed in another thread, as a plan is."""

        def act() -> HostSides:
            found: HostSides = eventlet.tpool.execute(HostSides.of, known, classes)
            return found

        return self._exclusive.run(act)

    def make_next(self) -> Planned:
        """Returns the next plan, which the policy goes on from. Raises what the policy raises."""
        planned = self._exclusive.run(self._make)
        self._note_fit(planned.fitted)
        self.made = planned.plan
        return planned

    def _make(self) -> Planned:
        began = time.monotonic()
        fit = self.budget.fit if self._goes_by_flows else self.budget.fit_marks
        known = self._take_snapshot()
        made = eventlet.tpool.execute(
            _plan_and_mark,
            known,
            fit,
            self.made,
            self._settings.policy,
            compile_rules=self._compile,
            assign=self._current.config.assign,
        )
        return Planned(began, *made)

    def between_plans(self, act: Callable[[], None]) -> None:
        """Call ``act`` while no plan is being made. Raises what it raises."""
        self._exclusive.run(act)

    def _take_snapshot(self) -> Snapshot:
        in_steps(self._registry.expire_in_steps())
        switches = self._network.switches()
        known = in_steps(
            self._registry.snapshot_in_steps(
                self._clock(),
                classes=self._current.config.classes,
                period=self._settings.period_seconds,
                switches=switches,
            )
        )
        ready = [switch.dpid for switch in switches]
        computed = self._current.config.forwarding == "paths"
        found = routes(known.hosts, self._current.config.links, ready, computed=computed)
        config = self._current.config
        return replace(known, routes=found, code_points=config.code_points, is_lossless=config.lossless is not None)

    def _note_fit(self, fitted: Fitted) -> None:
        """Remember how the flows fit into the switches' tables, and log a change of that."""
        before, self.fitted = self.fitted, fitted
        if self._goes_by_flows and fitted.step is not (before.step if before is not None else Step.LINKS):
            LOG.log(logging.INFO if fitted.step is Step.LINKS else logging.WARNING, "%s", self.distinction)
        if _host_rules(fitted) != (_host_rules(before) if before is not None else (True, True)):
            LOG.warning("%s", self.left_out or "switches have room again for the rules of hosts with jobs")

    @property
    def _goes_by_flows(self) -> bool:
        return self._current.config.enforcement.is_by_flows

    @property
    def left_out(self) -> str | None:
        """Why traffic between hosts with jobs may be other traffic; None: it has its class."""
        if self.fitted is None or self.fitted.snapshot.has_places_between_jobs:
            return None
        need = (
            f"need {self.fitted.place_rules} rules at a switch beside {self.fitted.rules} for flows, table_budget is "
            f"{self.budget.budget}"
        )
        if self.fitted.snapshot.has_places:
            return f"hosts with jobs {need}: traffic between hosts of different jobs is other traffic"
        return f"hosts that share jobs {need}: what their jobs send in other ways than TCP is other traffic"

    @property
    def distinction(self) -> str:
        """How switches distinguish the jobs' flows now, in a sentence."""
        if self.fitted is None or self.fitted.step is Step.LINKS:
            return "switches have a rule for each of the jobs' flows"
        need = f"the jobs' flows need {self.fitted.needs} rules at a switch, table_budget is {self.budget.budget}"
        if self.fitted.step is Step.PAIRS:
            return f"{need}: all traffic between two hosts is a job's where only this job talks there"
        return f"{need}: switches look at the hosts' marks alone, as with identity classes"

    @property
    def mode(self) -> Mode:
        """How switches distinguish jobs now."""
        return "marked" if self.degraded else self._current.config.enforcement.mode

    @property
    def degraded(self) -> str | None:
        """Why switches match marks although the settings say otherwise; None: they do not."""
        is_degraded = self.fitted is not None and self.fitted.step is Step.MARKED and self._goes_by_flows
        return self.distinction if is_degraded else None


def _plan_and_mark(
    known: Snapshot,
    fit: Callable[[Snapshot, float], Fitted],
    previous: Plan | None,
    policy: Policy,
    *,
    compile_rules: CompileRules,
    assign: Assign,
) -> tuple[Snapshot, Fitted, Plan, HostSides]:
    """Returns the snapshot with what fits into the switches, how it fits, the plan, and the hosts' sides of it."""
    fitted = fit(known, time.monotonic())
    snapshot = fitted.snapshot
    made = plan(snapshot, previous, policy=policy, compile_rules=compile_rules, assign=assign)
    return snapshot, fitted, made, HostSides.of(snapshot, made.classes)


def _host_rules(fitted: Fitted) -> tuple[bool, bool]:
    """Returns for which hosts switches have rules: those that share a job, and all with jobs."""
    return fitted.snapshot.has_places, fitted.snapshot.has_places_between_jobs

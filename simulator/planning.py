"""Which jobs run, and the bands in which they are served: the policy is asked where its order can be another.

What a policy declares of itself (``order_depends_on``) says when that is, and how much of a job has to be shown anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.model import MAX_CLASSES, Ordering, Snapshot, Stage
from controller.planner import Plan, PlanError, check, no_judgement, plan
from controller.policies.base import DependsOn, OptionError, Policy
from simulator.errors import InputError
from simulator.families import EarlierJobs
from simulator.jobs import Workload
from simulator.limits import MIN_PLAN_GAP_SECONDS, Limits
from simulator.network import Network
from simulator.ranks import Ranks
from simulator.tables import Tables, check_curve
from simulator.view import View


class Planning:
    """The running jobs, by arrival, and the plan in force. Times are those of the simulation's clock, in seconds."""

    def __init__(self, tables: Tables, policy: Policy, limits: Limits, network: Network, workload: Workload) -> None:
        self._tables = tables
        self._policy = policy
        self._limits = limits
        self._hosts = network.shown(workload.hosts)
        self._routes = network.routes
        depends_on = policy.order_depends_on
        if limits.classes is not None and depends_on is not DependsOn.NOTHING:
            # Classes are cut by the ports at which jobs still meet, which is part of what they have left.
            depends_on = DependsOn.EVERYTHING
        self._depends_on = depends_on
        still = depends_on is not DependsOn.EVERYTHING
        self._view = View(tables, by_pair=policy.reads_pairs, still=still)
        for job in workload.earlier:
            check_curve(f"earlier job {job.id}", job)
        self._ended_before = workload.earlier
        self._earlier: EarlierJobs | None = None
        self._ranks = Ranks(tables)
        self._running: list[tuple[float, int]] = []
        self._arrival: dict[int, float] = {}
        self._came = False
        self._plan: Plan | None = None
        self._ordering: Ordering | None = None
        self._planned_at = 0.0
        self._bands: list[list[int]] = []
        self._watched: dict[int, float] = {}
        self.plans = 0

    @property
    def running(self) -> dict[int, float]:
        """When each running job could begin, by number."""
        return self._arrival

    @property
    def next_look(self) -> float:
        """The moment from which the policy's order may be another though nothing has happened; infinite: none is."""
        return (
            float("inf")
            if self._ordering is None
            else max(self._ordering.until, self._planned_at + MIN_PLAN_GAP_SECONDS)
        )

    def begin(self, number: int, arrival: float) -> None:
        """Take in a job that could begin at ``arrival``."""
        if self._earlier is None and self._tables.jobs[number].family and self._depends_on is DependsOn.EVERYTHING:
            self._earlier = EarlierJobs(self._ended_before)
        self._arrival[number] = arrival
        insort(self._running, (arrival, number))
        self._came = True

    def end(self, number: int) -> None:
        """Forget a job, but for what it says of others of its family."""
        arrival = self._arrival.pop(number)
        del self._running[bisect_left(self._running, (arrival, number))]
        if self._earlier is not None:
            self._earlier.keep(self._tables.jobs[number], arrival, self._view.now)
        self._view.forget(number)
        self._watched.pop(number, None)

    def make(self, now: float) -> None:
        """Plan for the jobs that run now. Raises PlanError where the policy breaks its contract, and InputError for an
        option of the policy that does not fit the jobs."""
        if not self._running:
            return
        if self._depends_on is DependsOn.NOTHING:
            self._bands = [[number for _, number in self._running]]
        elif self._depends_on is DependsOn.ARRIVALS and not self._came:
            self._bands = self._without_the_ended()
        else:
            self._bands = self._ask_policy(now)
        self._came = False
        self._planned_at = now
        self.plans += 1
        self._ranks.apply(self._bands)

    def serve_last(self, new: Sequence[int]) -> None:
        """Serve jobs that no plan knows yet behind all others."""
        bands = self._without_the_ended() or [[]]
        bands[-1] += new
        self._bands = bands
        self._ranks.apply(bands)

    def _without_the_ended(self) -> list[list[int]]:
        return [[number for number in band if number in self._arrival] for band in self._bands]

    def _ask_policy(self, now: float) -> list[list[int]]:
        """The bands that the policy answers now."""
        try:
            ordering, bands = self._ask_for_bands(self._snapshot(now))
        except (PlanError, InputError):
            raise
        except OptionError as error:
            raise InputError(f"policy {self._policy.name}: {error}") from None
        except Exception as error:  # a policy may be anybody's
            raise PlanError(f"policy {self._policy.name} failed: {type(error).__name__}: {error}") from error
        self._ordering = ordering
        self._set_watch(ordering)
        return bands

    def _ask_for_bands(self, snapshot: Snapshot) -> tuple[Ordering, list[list[int]]]:
        number_of = self._tables.number
        if self._limits.classes is None:
            ordering = self._policy.order(snapshot, self._ordering)
            check(ordering, snapshot)
            return ordering, [[number_of[job] for job in band] for band in ordering.bands]
        self._plan = plan(snapshot, self._plan, policy=self._policy, assign=self._limits.assign, judge=no_judgement)
        bands: list[list[int]] = [[] for _ in range(self._limits.classes)]
        for band in self._plan.ordering.bands:
            for job in band:
                bands[self._plan.classes[job]].append(number_of[job])
        return self._plan.ordering, bands

    def _snapshot(self, now: float) -> Snapshot:
        numbers = [number for _, number in self._running]
        jobs = self._view.jobs(numbers, self._arrival)
        if self._earlier is not None:
            jobs = self._earlier.shown(jobs, [self._tables.jobs[number] for number in numbers])
        members: dict[str, list[str]] = {}
        for job in jobs:
            if job.stage is not None:
                members.setdefault(job.stage, []).append(job.id)
        limits = self._limits
        snapshot = Snapshot(
            now=now,
            hosts=self._hosts,
            jobs=jobs,
            classes=limits.classes if limits.classes is not None else MAX_CLASSES,
            stages=tuple(Stage(stage, tuple(ids)) for stage, ids in sorted(members.items())),
            routes=self._routes,
        )
        return snapshot if limits.period is None else replace(snapshot, period=limits.period)

    def _set_watch(self, ordering: Ordering) -> None:
        """Take the values whose crossing makes a plan; a crossing of the same value is reported once."""
        if not ordering.watch and not self._watched:
            return
        rows = self._tables.state.job
        for _, number in self._running:
            job = self._tables.jobs[number]
            value = ordering.watch.get(job.id)
            if value == self._watched.get(number):
                continue
            rows[number].reported = 0
            if value is None:
                del self._watched[number]
                rows[number].watch = np.nan
            else:
                self._watched[number] = value
                rows[number].watch = value if job.metric.direction == "max" else -value

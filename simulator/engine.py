"""``simulate``: a workload under a policy, as fluid flows, event by event, with the very plan of the controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from controller.model import BITS_PER_BYTE, MAX_CLASSES, Ordering, Port, Snapshot, Stage
from controller.planner import Plan, PlanError, check, no_judgement, plan
from controller.policies._base import OptionError, Policy
from simulator.errors import InputError
from simulator.jobs import SimJob, Workload
from simulator.kernel import advance, start, together
from simulator.kernel_state import CROSSED, ENDED, F8, IDLE, NOW, ROWS
from simulator.kernel_watch import note_rates
from simulator.network import Hose, Network
from simulator.outcome import JobOutcome, Outcome
from simulator.ranks import Ranks
from simulator.tables import Tables
from simulator.view import View

LEAST_QUANTUM = 1e-6
"""Seconds; finer is exact, but for rounding."""

SOONEST = 1e-3
"""Seconds between a plan and one that follows because the policy says that time has passed."""

Follow = Callable[[str, float], Sequence[SimJob]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the network and the controller can do.

    ``classes``: K, cut from the ordering by the planner; None: a rank for every band. ``period``: the controller's T in
    seconds, beside the plans that are made at once (a job comes or ends, crosses its target); None: control is
    instant, and there is also a plan at every moment from which the policy's order may be another.
    ``rates``: max-min inside a rank, or Varys's MADD. ``quantum``: 0 is exact; else what a flow that ends before the
    last of its step leaves is handed out at multiples of so many seconds only. ``assign``: how K classes are cut.
    ``delay``: seconds from what makes a plan to the plan in force, which takes in all that happens meanwhile; a new job
    is served with the last until then.
    """

    classes: int | None = None
    period: float | None = None
    rates: Literal["maxmin", "madd"] = "maxmin"
    quantum: float = 0.0
    assign: Literal["layered", "top"] = "layered"
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.classes is not None and self.classes < 1:
            raise InputError(f"classes: {self.classes}; it must be at least 1")
        if self.period is not None and not SOONEST <= self.period < float("inf"):
            raise InputError(f"period: {self.period}; it must be a number of at least {SOONEST:g}, in seconds")
        if not 0 <= self.delay < float("inf"):
            raise InputError(f"delay: {self.delay}; it must be a number of 0 or more, in seconds")
        if self.quantum and not LEAST_QUANTUM <= self.quantum < float("inf"):
            raise InputError(f"quantum: {self.quantum}; it must be 0, or at least {LEAST_QUANTUM:g}, in seconds")


def _silent(_share: float) -> None:
    return None


def simulate(
    workload: Workload,
    policy: Policy,
    limits: Limits,
    *,
    network: Network | None = None,
    watch: Collection[Port] = (),
    follow: Follow | None = None,
    progress: Callable[[float], None] = _silent,
) -> Outcome:
    """Run until every job has ended.

    ``network``: the hose model of the workload's hosts if None. ``follow`` is called with a job and its end, and may
    return jobs that arrive then. ``progress`` is told the share of the jobs that have ended. Raises InputError for a
    workload that cannot be run and for an option of the policy that does not fit it, PlanError where the policy breaks
    its contract.
    """
    began = time.perf_counter()
    run = _Run(
        workload,
        policy,
        limits,
        network or Hose(workload.hosts),
        watch=watch,
        follow=follow,
        progress=progress,
    )
    run.until_done()
    return run.outcome(time.perf_counter() - began)


class _Run:
    """One simulation on its way."""

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        limits: Limits,
        network: Network,
        *,
        watch: Collection[Port],
        follow: Follow | None,
        progress: Callable[[float], None],
    ) -> None:
        self._workload = workload
        self._policy = policy
        self._limits = limits
        self._network = network
        self._hosts = network.shown(workload.hosts)
        self._follow = follow
        self._progress = progress
        self._watch = tuple(watch)
        for port in self._watch:
            if (port.host, port.direction) not in network.number:
                raise InputError(f"port {port.host} {port.direction}: it is to be watched, but there is no such port")
        watched = [network.number[port.host, port.direction] for port in self._watch]
        self._tables = Tables(network, workload.hosts, quantum=limits.quantum, watched=watched)
        self._stretches: list[F8] = []
        self._view = View(self._tables, by_pair=policy.reads_pairs)
        self._ranks = Ranks(self._tables)
        self._arrivals: list[tuple[float, int]] = []
        self._waiting: dict[str, list[int]] = {}
        self._missing: dict[int, int] = {}
        self._arrival: dict[int, float] = {}
        self._end: dict[int, float] = {}
        self._running: dict[int, float] = {}
        self._plan: Plan | None = None
        self._ordering: Ordering | None = None
        self._planned_at = 0.0
        self._bands: list[list[int]] = []
        self._plans = 0
        self._watched: dict[int, float] = {}

    def until_done(self) -> None:
        self._add(self._workload.jobs, 0.0)
        tick = 0
        period = self._limits.period
        planned = float("inf")  # when the next plan is in force
        while self._arrivals or self._running:
            due = float("inf")
            if period is not None and self._running:
                tick = max(tick, int(self._now / period * (1 + 1e-12)) + 1)
                due = tick * period
            elif planned == float("inf") and self._running and self._ordering is not None:
                # The time of an order may be up while the plan after it is under way: that asks for no other.
                due = max(self._ordering.until, self._planned_at + SOONEST)
            limit = min(due, planned, self._arrivals[0][0] if self._arrivals else float("inf"))
            why = advance(self._tables.state, limit, self._limits.rates == "madd")
            self._take_rows()
            changed = self._take_ended()
            if why == IDLE and self._running:
                stuck = self._tables.jobs[min(self._running)].id
                raise InputError(f"job {stuck}: it would never end: its bytes take longer than can be counted")
            crossed = self._take_crossed()
            new = self._take_arrived()
            ticked = self._now >= due - together(self._now)
            if new or changed or crossed or ticked:
                tick += ticked
                planned = min(planned, self._now + self._limits.delay)
            if planned <= self._now + together(self._now):
                planned = float("inf")
                self._make_plan()
            elif new:
                self._serve_last(new)
            for number in new:
                start(self._tables.state, number)
        if self._missing:
            waits = self._tables.jobs[min(self._missing)]
            raise InputError(f"job {waits.id}: it waits for {', '.join(waits.after)}, and one of them waits for it")

    @property
    def _now(self) -> float:
        return float(self._tables.state.clk[NOW])

    def _add(self, jobs: Sequence[SimJob], now: float) -> None:
        if not jobs:
            return
        numbers = self._tables.add(jobs)
        for number, job in zip(numbers, jobs, strict=True):
            for other in job.after:
                if other not in self._tables.number:
                    raise InputError(f"job {job.id}: it waits for {other}, but there is no such job")
            waits = {other for other in job.after if self._tables.number[other] not in self._end}
            self._arrival[number] = (
                max(now, job.arrival, *(self._end.get(self._tables.number[other], 0.0) for other in job.after))
                if job.after
                else max(now, job.arrival)
            )
            for other in waits:
                self._waiting.setdefault(other, []).append(number)
            if waits:
                self._missing[number] = len(waits)
            else:
                heappush(self._arrivals, (self._arrival[number], number))

    def _take_arrived(self) -> list[int]:
        new: list[int] = []
        while self._arrivals and self._arrivals[0][0] <= self._now + together(self._now):
            when, number = heappop(self._arrivals)
            self._running[number] = when
            new.append(number)
        return new

    def _take_ended(self) -> bool:
        state = self._tables.state
        numbers = sorted(int(number) for number in state.ended[: state.num[ENDED]])
        state.num[ENDED] = 0
        for number in numbers:
            self._end[number] = self._now
            del self._running[number]
            self._view.forget(number)
            self._watched.pop(number, None)
        for number in numbers:
            job = self._tables.jobs[number]
            for other in self._waiting.pop(job.id, []):
                self._missing[other] -= 1
                if not self._missing[other]:
                    del self._missing[other]
                    self._arrival[other] = max(self._arrival[other], self._now)
                    heappush(self._arrivals, (self._arrival[other], other))
            if self._follow is not None and (more := self._follow(job.id, self._now)):
                self._add(more, self._now)
            self._progress(len(self._end) / len(self._tables.jobs))
        return bool(numbers)

    def _take_crossed(self) -> bool:
        state = self._tables.state
        crossed = bool(state.num[CROSSED])
        state.num[CROSSED] = 0
        return crossed

    def _take_rows(self) -> None:
        state = self._tables.state
        if state.num[ROWS]:
            self._stretches.append(state.rows[: state.num[ROWS]].copy())
            state.num[ROWS] = 0

    # Planning ----------------------------------------------------------------------------------------------------

    def _make_plan(self) -> None:
        if not self._running:
            return
        try:
            self._plan_for(self._snapshot())
        except (PlanError, InputError):
            raise
        except OptionError as error:
            raise InputError(f"policy {self._policy.name}: {error}") from None
        except Exception as error:  # a policy may be anybody's
            raise PlanError(f"policy {self._policy.name} failed: {type(error).__name__}: {error}") from error

    def _plan_for(self, snapshot: Snapshot) -> None:
        numbers = self._tables.number
        if self._limits.classes is None:
            ordering = self._policy.order(snapshot, self._ordering)
            check(ordering, snapshot)
            bands = [[numbers[job] for job in band] for band in ordering.bands]
        else:
            self._plan = plan(snapshot, self._plan, policy=self._policy, assign=self._limits.assign, judge=no_judgement)
            ordering = self._plan.ordering
            bands = [[] for _ in range(self._limits.classes)]
            for band in ordering.bands:
                for job in band:
                    bands[self._plan.classes[job]].append(numbers[job])
        self._ordering = ordering
        self._planned_at = self._now
        self._plans += 1
        self._bands = bands
        self._ranks.apply(bands)
        self._set_watch(ordering)

    def _serve_last(self, new: Sequence[int]) -> None:
        """Serve jobs that no plan knows yet."""
        bands = [[number for number in band if number in self._running] for band in self._bands] or [[]]
        bands[-1] += new
        self._bands = bands
        self._ranks.apply(bands)

    def _snapshot(self) -> Snapshot:
        running = sorted(self._running, key=lambda number: (self._running[number], number))
        jobs = self._view.jobs({number: self._running[number] for number in running})
        members: dict[str, list[str]] = {}
        for job in jobs:
            if job.stage is not None:
                members.setdefault(job.stage, []).append(job.id)
        limits = self._limits
        snapshot = Snapshot(
            now=self._now,
            hosts=self._hosts,
            jobs=jobs,
            classes=limits.classes if limits.classes is not None else MAX_CLASSES,
            stages=tuple(Stage(stage, tuple(ids)) for stage, ids in sorted(members.items())),
            routes=self._network.routes,
        )
        return snapshot if limits.period is None else replace(snapshot, period=limits.period)

    def _set_watch(self, ordering: Ordering) -> None:
        """Take the values whose crossing makes a plan; what was told of the same value stays told."""
        state = self._tables.state
        for number in self._running:
            job = self._tables.jobs[number]
            value = ordering.watch.get(job.id)
            if value == self._watched.get(number):
                continue
            state.job[number].told = 0
            if value is None:
                del self._watched[number]
                state.job[number].watch = np.nan
            else:
                self._watched[number] = value
                state.job[number].watch = value if job.metric.direction == "max" else -value

    # The end -----------------------------------------------------------------------------------------------------

    def outcome(self, seconds: float) -> Outcome:
        state, tables = self._tables.state, self._tables
        job_of = state.lane["job"][state.bundle["lane"]]
        total = state.bundle["flows"] * state.more["bytes"] * state.job["iterations"][job_of]
        carried = np.zeros(len(tables.network.ports))
        for hop in range(state.paths.shape[1]):
            link = state.paths[state.bundle["path"], hop]
            on = link >= 0
            carried += np.bincount(link[on], weights=total[on], minlength=len(carried))
        pairs = tables.ends.pairs[state.bundle["path"]]
        job_bytes = np.bincount(job_of, weights=total * pairs, minlength=len(tables.jobs))
        jobs = {}
        for number, job in enumerate(tables.jobs):
            place = int(state.job[number].ends)
            jobs[job.id] = JobOutcome(
                id=job.id,
                arrival=self._arrival[number],
                # Arrivals that are less apart than the clock can tell begin together.
                end=max(self._end[number], self._arrival[number]),
                bytes=float(job_bytes[number]),
                iteration_ends=state.ends[place : place + job.iterations].copy() if job.iterations > 1 else np.zeros(0),
            )
        return Outcome(
            policy=self._policy.name,
            jobs=jobs,
            port_bytes=dict(zip(tables.network.ports, carried.tolist(), strict=True)),
            plans=self._plans,
            iterations=int(state.job["iterations"].sum()),
            wall_seconds=seconds,
            timeline=self._timeline(),
        )

    def _timeline(self) -> dict[Port, F8]:
        """Of each watched port the stretches (start, end, job, bit/s) by start, then job."""
        note_rates(self._tables.state)
        self._take_rows()
        rows = np.concatenate(self._stretches) if self._stretches else np.zeros((0, 5))
        rows = rows[np.lexsort((rows[:, 3], rows[:, 1]))]
        rows[:, 4] *= BITS_PER_BYTE
        return {port: rows[rows[:, 0] == place, 1:] for place, port in enumerate(self._watch)}

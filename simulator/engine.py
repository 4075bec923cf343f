"""``simulate``: a workload under a policy, as fluid flows, event by event, with the very plan of the controller.

The clock counts from the first arrival, so times far from 0, as Unix times are, lose no digits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush

import numpy as np

from controller.model import BITS_PER_BYTE, Port
from controller.policies.base import Policy
from simulator.errors import InputError
from simulator.jobs import SimJob, Workload
from simulator.kernel.events import advance, start, together
from simulator.kernel.state import CROSSED, ENDED, F8, IDLE, NOW, ROWS
from simulator.kernel.watch import note_rates
from simulator.limits import Limits
from simulator.network import Hose, Network
from simulator.outcome import JobOutcome, Outcome
from simulator.planning import Planning
from simulator.tables import Tables

__all__ = ["Follow", "Limits", "simulate"]

Follow = Callable[[str, float], Sequence[SimJob]]


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

    ``network``: the hose model of the workload's hosts if None. ``follow`` is called with a job and its end, in the
    time of the workload's arrivals, and may return jobs that arrive then. ``progress`` is told the share of the jobs
    that have ended. Raises InputError for a workload that cannot be run and for an option of the policy that does not
    fit it, PlanError where the policy breaks its contract.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
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
    return run.outcome(time.perf_counter() - began, time.process_time() - cpu_began)


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
        self._follow = follow
        self._progress = progress
        self._watch = tuple(watch)
        for port in self._watch:
            if (port.host, port.direction) not in network.number:
                raise InputError(f"port {port.host} {port.direction}: it is to be watched, but there is no such port")
        watched = [network.number[port.host, port.direction] for port in self._watch]
        self._tables = Tables(network, workload.hosts, quantum=limits.quantum, watched=watched)
        self._stretches: list[F8] = []
        self._planning = Planning(self._tables, policy, limits, network, workload)
        # A job that waits for others may come at any time after them, and says 0.
        self._origin = min((job.arrival for job in workload.jobs if not job.after), default=0.0)
        self._arrivals: list[tuple[float, int]] = []
        self._waiting: dict[str, list[int]] = {}
        self._missing: dict[int, int] = {}
        self._arrival: dict[int, float] = {}
        self._end: dict[int, float] = {}

    def until_done(self) -> None:
        self._add(self._workload.jobs, 0.0)
        running = self._planning.running
        tick = 0
        period = self._limits.period
        planned = float("inf")  # when the next plan is in force
        while self._arrivals or running:
            due = float("inf")
            if period is not None and running:
                tick = max(tick, int(self._now / period * (1 + 1e-12)) + 1)
                due = tick * period
            elif planned == float("inf") and running:
                # The time of an order may be up while the plan after it is under way: that asks for no other.
                due = self._planning.next_look
            limit = min(due, planned, self._arrivals[0][0] if self._arrivals else float("inf"))
            why = advance(self._tables.state, limit, self._limits.rates == "madd")
            self._collect_rows()
            changed = self._handle_ended()
            if why == IDLE and running:
                stuck = self._tables.jobs[min(running)].id
                raise InputError(f"job {stuck}: it would never end: its bytes take longer than can be counted")
            crossed = self._reset_crossed()
            new = self._handle_arrivals()
            ticked = self._now >= due - together(self._now)
            if new or changed or crossed or ticked:
                tick += ticked
                planned = min(planned, self._now + self._limits.delay)
            if planned <= self._now + together(self._now):
                planned = float("inf")
                self._planning.make(self._now)
            elif new:
                self._planning.serve_last(new)
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
            arrival = job.arrival - self._origin
            self._arrival[number] = (
                max(now, arrival, *(self._end.get(self._tables.number[other], 0.0) for other in job.after))
                if job.after
                else max(now, arrival)
            )
            for other in waits:
                self._waiting.setdefault(other, []).append(number)
            if waits:
                self._missing[number] = len(waits)
            else:
                heappush(self._arrivals, (self._arrival[number], number))

    def _handle_arrivals(self) -> list[int]:
        new: list[int] = []
        while self._arrivals and self._arrivals[0][0] <= self._now + together(self._now):
            when, number = heappop(self._arrivals)
            self._planning.begin(number, when)
            new.append(number)
        return new

    def _handle_ended(self) -> bool:
        state = self._tables.state
        numbers = sorted(int(number) for number in state.ended[: state.num[ENDED]])
        state.num[ENDED] = 0
        for number in numbers:
            self._end[number] = self._now
            self._planning.end(number)
        for number in numbers:
            job = self._tables.jobs[number]
            for other in self._waiting.pop(job.id, []):
                self._missing[other] -= 1
                if not self._missing[other]:
                    del self._missing[other]
                    self._arrival[other] = max(self._arrival[other], self._now)
                    heappush(self._arrivals, (self._arrival[other], other))
            if self._follow is not None and (more := self._follow(job.id, self._now + self._origin)):
                self._add(more, self._now)
            self._progress(len(self._end) / len(self._tables.jobs))
        return bool(numbers)

    def _reset_crossed(self) -> bool:
        state = self._tables.state
        crossed = bool(state.num[CROSSED])
        state.num[CROSSED] = 0
        return crossed

    def _collect_rows(self) -> None:
        state = self._tables.state
        if state.num[ROWS]:
            self._stretches.append(state.rows[: state.num[ROWS]].copy())
            state.num[ROWS] = 0

    def outcome(self, wall_seconds: float, cpu_seconds: float) -> Outcome:
        state, tables = self._tables.state, self._tables
        job_of = state.lane["job"][state.bundle["lane"]]
        sizes = state.more["bytes"] * np.maximum(state.more["chunks"], 1)
        total = state.bundle["flows"] * sizes * state.job["iterations"][job_of]
        carried = np.zeros(len(tables.network.ports))
        for hop in range(state.paths.shape[1]):
            link = state.paths[state.bundle["path"], hop]
            on = link >= 0
            carried += np.bincount(link[on], weights=total[on], minlength=len(carried))
        job_bytes = np.bincount(job_of, weights=total, minlength=len(tables.jobs))
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
            plans=self._planning.plans,
            iterations=int(state.job["iterations"].sum()),
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            timeline=self._timeline(),
        )

    def _timeline(self) -> dict[Port, F8]:
        """Of each watched port the stretches (start, end, job, bit/s) by start, then job."""
        note_rates(self._tables.state)
        self._collect_rows()
        rows = np.concatenate(self._stretches) if self._stretches else np.zeros((0, 5))
        rows = rows[np.lexsort((rows[:, 3], rows[:, 1]))]
        rows[:, 4] *= BITS_PER_BYTE
        return {port: rows[rows[:, 0] == place, 1:] for place, port in enumerate(self._watch)}

"""The simulated state as the policies see it: a ``Snapshot`` of the jobs that run, made as the controller would make it.

A job of one iteration (a coflow) shows what it has left, not what it had: its demand shrinks as it is served and
``iterations_left`` stays 1, so every load that a policy computes is that of the bytes that are still to go. Pairs of hosts
are put together by port: the sum a port is exact, and that is all that the hose model knows. A job of many iterations
shows its demand an iteration, the iterations that all its lanes have done, and its metric after each, thinned.
"""

from __future__ import annotations

import numpy as np

from controller.model import Demand, Job, Progress
from simulator.jobs import Compute, SimJob
from simulator.kernel_state import F8, NOW
from simulator.kernel_view import left_by_host, sent_by_host
from simulator.tables import Tables

REPORTS = 200
"""A history longer than twice this is thinned to every other report, as the controller does with longer ones."""


class View:
    """What is shown of each job; what cannot have changed since the last look is shown again as it was."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._shown: dict[int, Job] = {}
        self._history: dict[int, _History] = {}
        self._demand: dict[int, tuple[Demand, ...]] = {}
        self._total: dict[int, F8] = {}  # bytes from each host, before any was sent
        hosts = len(tables.hosts)
        self._out, self._into = np.zeros(hosts), np.zeros(hosts)

    def forget(self, number: int) -> None:
        """A job has ended."""
        for known in (self._shown, self._history, self._demand, self._total):
            known.pop(number, None)

    def job(self, number: int, arrival: float) -> Job:
        """Job ``number`` as it stands now; ``arrival``: when it could begin."""
        job, state = self._tables.jobs[number], self._tables.state
        shown = self._shown.get(number)
        if shown is not None and not state.job[number].served and state.job[number].done == shown.iterations_done:
            return shown
        if job.iterations == 1 and not job.curve:
            shown = self._coflow(number, job, arrival)
        else:
            shown = self._training(number, job, arrival)
        self._shown[number] = shown
        return shown

    def _coflow(self, number: int, job: SimJob, arrival: float) -> Job:
        tables = self._tables
        left_by_host(tables.state, number, tables.path_src, tables.path_dst, self._out, self._into)
        demand = _paired(tables.hosts, self._out, self._into)
        if number not in self._total:
            self._total[number] = self._out.copy()
        sent = self._total[number] - self._out
        return Job(
            id=job.id,
            demand=demand,
            arrival=arrival,
            weight=job.weight,
            stage=job.stage,
            iterations_left=1.0,
            iterations_total=1.0,
            compute_seconds=_compute_seconds(job),
            metric=job.metric,
            tasks=job.tasks,
            sent_bytes=_by_host(tables.hosts, sent),
        )

    def _training(self, number: int, job: SimJob, arrival: float) -> Job:
        tables = self._tables
        state = tables.state
        sent_by_host(state, number, tables.path_src, self._out)
        if number not in self._demand:
            self._demand[number] = _an_iteration(job)
            self._history[number] = _History(job)
        done = int(state.job[number].done)
        place = int(state.job[number].ends)
        return Job(
            id=job.id,
            demand=self._demand[number],
            arrival=arrival,
            weight=job.weight,
            stage=job.stage,
            iterations_left=float(job.iterations - done),
            iterations_total=float(job.iterations),
            compute_seconds=_compute_seconds(job),
            progress=self._history[number].until(done, state.ends[place : place + done]),
            metric=job.metric,
            tasks=job.tasks,
            sent_bytes=_by_host(tables.hosts, self._out),
        )

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return float(self._tables.state.clk[NOW])


class _History:
    """What a job has reported, thinned: every ``stride``-th iteration and the last."""

    def __init__(self, job: SimJob) -> None:
        self._curve = job.curve
        self._stride = 1
        self._kept: list[Progress] = []

    def until(self, done: int, ends: F8) -> tuple[Progress, ...]:
        """The reports of ``done`` iterations, which ended at ``ends`` (done,)."""
        if done == 0:
            return ()
        if not self._curve:
            return (Progress(float(done), float(ends[-1])),)
        self._kept += [
            self._report(k, ends) for k in range((len(self._kept) + 1) * self._stride, done + 1, self._stride)
        ]
        while len(self._kept) > 2 * REPORTS:
            self._kept = self._kept[1::2]
            self._stride *= 2
        last = self._kept[-1].iteration if self._kept else 0
        return (*self._kept, *(() if last == done else (self._report(done, ends),)))

    def _report(self, k: int, ends: F8) -> Progress:
        return Progress(float(k), float(ends[k - 1]), self._curve[k - 1])


def _paired(hosts: tuple[str, ...], out: F8, into: F8) -> tuple[Demand, ...]:
    """Few demands with these sums a host: the first host's bytes go to the first that takes some, and so on."""
    sources, targets = np.flatnonzero(out), np.flatnonzero(into)
    if not len(sources):
        return ()
    gives, takes = np.cumsum(out[sources]), np.cumsum(into[targets])
    # Both sum up to the same; rounding must not lose a port at the end.
    takes = np.minimum(takes * (gives[-1] / takes[-1]), gives[-1])
    takes[-1] = gives[-1]
    cuts = np.union1d(gives, takes)
    amounts = np.diff(cuts, prepend=0.0)
    src = sources[np.searchsorted(gives, cuts)].tolist()
    dst = targets[np.searchsorted(takes, cuts)].tolist()
    return tuple([Demand(hosts[i], hosts[k], size) for i, k, size in zip(src, dst, amounts.tolist(), strict=True)])


def _an_iteration(job: SimJob) -> tuple[Demand, ...]:
    """What one iteration sends, by pair of hosts."""
    total: dict[tuple[str, str], float] = {}
    for lane in job.lanes:
        for step in lane:
            if not isinstance(step, Compute):
                for flow in step.flows:
                    total[flow.src, flow.dst] = total.get((flow.src, flow.dst), 0.0) + flow.bytes
    return tuple(Demand(src, dst, size) for (src, dst), size in total.items() if size > 0)


def _by_host(hosts: tuple[str, ...], amounts: F8) -> dict[str, float]:
    some = np.flatnonzero(amounts > 0)
    return {hosts[i]: amount for i, amount in zip(some.tolist(), amounts[some].tolist(), strict=True)}


def _compute_seconds(job: SimJob) -> float:
    return max(sum(step.seconds for step in lane if isinstance(step, Compute)) for lane in job.lanes)

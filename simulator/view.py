"""The simulated state as the policies see it: a ``Snapshot`` of the jobs that run, as the controller would make it.

A job of one iteration (a coflow) shows what it has left, not what it had: its demand shrinks as it is served and
``iterations_left`` stays 1, so every load that a policy computes is that of the bytes that are still to go. In the hose
model pairs of hosts are put together by port: the sum a port is exact, and that is all that it knows. Where there are
links between the hosts' own every pair is shown, for each has its path. To a policy that reads pairs (``reads_pairs``)
a coflow shows in any network what it had, by its own pairs, and as ``iterations_left`` the share of all bytes that it
has left. A job of many iterations shows its demand an iteration, the iterations that all its lanes have done, and its
metric after each, thinned. A policy that looks at none of this is shown every job as it first was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from controller.curves.record import Record
from controller.model import Demand, Job, Progress
from controller.ordering.loads import summed
from simulator.jobs import Compute, SimJob, Transfer
from simulator.kernel.state import F8, I4, NOW
from simulator.kernel.view import left_by_host, paired, sent_by_host, sent_by_jobs
from simulator.tables import Tables

REPORTS = 200
"""A history longer than twice this is thinned to every other report, as the controller does with longer ones."""


class View:
    """What is shown of each job; what cannot have changed since the last look is shown again as it was.

    ``still``: every job is shown as it was at the first look.
    """

    def __init__(self, tables: Tables, *, by_pair: bool = False, still: bool = False) -> None:
        self._tables = tables
        self._by_pair = by_pair
        self._still = still
        self._shown: dict[int, Job] = {}
        self._done = np.zeros(0, np.int64)  # iterations of each job as it is shown; -1: it never was
        self._training: dict[int, _Training] = {}
        self._demand: dict[int, tuple[Demand, ...]] = {}
        self._total: dict[int, F8] = {}  # bytes from each host, before any was sent
        hosts = len(tables.hosts)
        self._out, self._into, self._sent = np.zeros(hosts), np.zeros(hosts), np.zeros(hosts)
        self._pairs = np.zeros(2 * hosts + 2, np.int32), np.zeros(2 * hosts + 2, np.int32), np.zeros(2 * hosts + 2)

    def forget(self, number: int) -> None:
        """A job has ended."""
        for known in (self._shown, self._training, self._demand, self._total):
            known.pop(number, None)

    def jobs(self, numbers: Sequence[int], arrivals: Mapping[int, float]) -> tuple[Job, ...]:
        """Jobs by number as they stand now; ``arrivals``: when each could begin."""
        rows = self._tables.state.job
        if len(self._done) < len(rows):
            self._done = np.r_[self._done, np.full(len(rows) - len(self._done), -1)]
        places = np.array(numbers, np.intp)
        old = self._done[places] < 0
        if not self._still:
            old |= (rows["served"][places] != 0) | (rows["done"][places] != self._done[places])
        training: list[int] = []
        for number in places[old].tolist():
            job = self._tables.jobs[number]
            if job.iterations == 1 and not job.curve:
                self._shown[number] = self._coflow(number, job, arrivals[number])
            else:
                training.append(number)
                if number not in self._training:
                    self._training[number] = _Training(self._tables, number, arrivals[number])
        if training:
            self._look_at([self._training[number] for number in training], rows["done"][training].tolist())
        self._done[places] = rows["done"][places]
        return tuple([self._shown[number] for number in numbers])

    def _look_at(self, jobs: Sequence[_Training], done: Sequence[int]) -> None:
        """Show training jobs as they stand now: one call of the compiled loops for all of them."""
        state, ends = self._tables.state, self._tables.ends
        begin = np.zeros(len(jobs) + 1, np.int32)
        np.cumsum([len(job.hosts) for job in jobs], out=begin[1:])
        hosts, sent = np.concatenate([job.hosts for job in jobs]), np.zeros(begin[-1])
        numbers = np.array([job.number for job in jobs], np.int32)
        sent_by_jobs(state, numbers, ends.src, begin, hosts, self._out, sent)
        amounts, first = sent.tolist(), begin.tolist()
        for i, (job, iterations) in enumerate(zip(jobs, done, strict=True)):
            self._shown[job.number] = job.shown(iterations, state.ends, amounts[first[i] : first[i + 1]])

    def _coflow(self, number: int, job: SimJob, arrival: float) -> Job:
        tables = self._tables
        left_by_host(tables.state, number, *tables.ends, self._out, self._into)
        if number not in self._total:
            # Where plans have a delay it has sent something before it is looked at for the first time.
            sent_by_host(tables.state, number, tables.ends.src, self._sent)
            self._total[number] = self._out + self._sent
        sent = self._total[number] - self._out
        return Job(
            id=job.id,
            demand=self._an_iteration(number, job) if self._by_pair else self._left(number),
            arrival=arrival,
            weight=job.weight,
            stage=job.stage,
            rungs_left=job.rungs_left,
            iterations_left=_share(self._out, self._total[number]) if self._by_pair else 1.0,
            iterations_total=1.0,
            compute_seconds=_compute_seconds(job),
            metric=job.metric,
            target=job.target,
            tasks=job.tasks,
            sent_bytes=_by_host(tables.hosts, sent),
        )

    def _left(self, number: int) -> tuple[Demand, ...]:
        """What a coflow has left, of which ``_out`` and ``_into`` are the sums a host."""
        if self._tables.network.routes is None:
            src, dst, size = self._pairs
            pairs = paired(self._out, self._into, src, dst, size)
            src, dst, size = src[:pairs], dst[:pairs], size[:pairs]
        else:
            src, dst, size = self._left_by_pair(number)
        host = self._tables.hosts.__getitem__
        return tuple(map(Demand, map(host, src.tolist()), map(host, dst.tolist()), size.tolist()))

    def _an_iteration(self, number: int, job: SimJob) -> tuple[Demand, ...]:
        """What one iteration of a job sends: the same object at every look."""
        if number not in self._demand:
            self._demand[number] = _an_iteration(job)
        return self._demand[number]

    def _left_by_pair(self, number: int) -> tuple[I4, I4, F8]:
        """Sources, targets, and the bytes that a job of one iteration still sends from one to the other."""
        state, ends = self._tables.state, self._tables.ends
        steps = slice(state.lane[state.job[number].first].first, state.lane[state.job[number].end - 1].end)
        first, end = state.step["first"][steps], state.step["end"][steps]
        bundle = state.bundle[first[0] : end[-1]] if len(first) else state.bundle[:0]
        left = np.maximum(bundle["left"] - bundle["rate"] * (self.now - bundle["since"]), 0.0)
        more = state.more[first[0] : end[-1]] if len(first) else state.more[:0]
        unsent = more["bytes"] * (more["chunks"] - more["sent"] - more["busy"])
        left = np.where(more["chunks"] > 0, unsent + left * more["busy"], left)
        by_path = summed(bundle["path"], left * bundle["flows"], len(ends.src))
        places = np.flatnonzero(by_path)
        return ends.src[places], ends.dst[places], by_path[places]

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return float(self._tables.state.clk[NOW])


class _Training:
    """A job of many iterations: what of it stays, and its reports so far. ``hosts``: those it sends from, ascending."""

    def __init__(self, tables: Tables, number: int, arrival: float) -> None:
        self.number = number
        self._job = tables.jobs[number]
        self._arrival = arrival
        state, ends = tables.state, tables.ends
        lanes = state.lane[state.job["first"][number] : state.job["end"][number]]
        steps = state.step[lanes["first"][0] : lanes["end"][-1]]
        bundles = state.bundle[steps["first"][0] : steps["end"][-1]] if len(steps) else state.bundle[:0]
        self.hosts: I4 = np.unique(ends.src[bundles["path"]])
        self._names = [tables.hosts[host] for host in self.hosts.tolist()]
        self._place = int(state.job["ends"][number])
        self._demand = _an_iteration(self._job)
        self._compute_seconds = _compute_seconds(self._job)
        self._history = _History(self._job)

    def shown(self, done: int, ends: F8, sent: Sequence[float]) -> Job:
        """After ``done`` iterations; ``ends`` are those of all jobs' iterations, ``sent`` the bytes from ``hosts``."""
        job = self._job
        return Job(
            id=job.id,
            demand=self._demand,
            arrival=self._arrival,
            weight=job.weight,
            stage=job.stage,
            rungs_left=job.rungs_left,
            iterations_left=float(job.iterations - done),
            iterations_total=float(job.iterations),
            compute_seconds=self._compute_seconds,
            progress=self._history.until(done, ends[self._place : self._place + done]),
            metric=job.metric,
            target=job.target,
            tasks=job.tasks,
            sent_bytes=dict(zip(self._names, sent, strict=True))
            if min(sent, default=1.0) > 0
            else self._positive(sent),
        )

    def _positive(self, sent: Sequence[float]) -> dict[str, float]:
        """What was sent from those hosts that have sent anything."""
        return {host: amount for host, amount in zip(self._names, sent, strict=True) if amount > 0}


class _History:
    """What a job has reported, thinned: every ``stride``-th iteration and the last."""

    def __init__(self, job: SimJob) -> None:
        self._curve = job.curve
        self._stride = 1
        self._record = Record()
        self._done = 0
        self._shown: Sequence[Progress] = ()

    def until(self, done: int, ends: F8) -> Sequence[Progress]:
        """The reports of ``done`` iterations, which ended at ``ends`` (done,); the same object until there are more."""
        if done != self._done:
            self._done, self._shown = done, self._reports(done, ends)
        return self._shown

    def _reports(self, done: int, ends: F8) -> Sequence[Progress]:
        if not self._curve:
            return (Progress(float(done), float(ends[-1])),)
        while done // self._stride > 2 * REPORTS:
            self._stride *= 2
            self._record = Record()
        stride = self._stride
        first = (self._record.kept + 1) * stride
        last = Progress(float(done), float(ends[-1]), self._curve[done - 1])
        return self._record.go_on(
            range(first, done + 1, stride),
            ends[first - 1 : done : stride].tolist(),
            self._curve[first - 1 : done : stride],
            last=last,
            stands_in=done % stride > 0,
        )


def _an_iteration(job: SimJob) -> tuple[Demand, ...]:
    """What one iteration sends, by pair of hosts."""
    total: dict[tuple[str, str], float] = {}
    for lane in job.lanes:
        for step in lane:
            if isinstance(step, Transfer):
                for flow in step.flows:
                    total[flow.src, flow.dst] = total.get((flow.src, flow.dst), 0.0) + flow.bytes
    return tuple(Demand(src, dst, size) for (src, dst), size in total.items() if size > 0)


def _share(part: F8, whole: F8) -> float:
    """How much of one sum the other is; 1 where there is nothing."""
    total = float(whole.sum())
    return min(float(part.sum()) / total, 1.0) if total > 0 else 1.0


def _by_host(hosts: tuple[str, ...], amounts: F8) -> dict[str, float]:
    senders = np.flatnonzero(amounts > 0)
    return dict(zip(map(hosts.__getitem__, senders.tolist()), amounts[senders].tolist(), strict=True))


def _compute_seconds(job: SimJob) -> float:
    return max(sum(step.seconds for step in lane if isinstance(step, Compute)) for lane in job.lanes)

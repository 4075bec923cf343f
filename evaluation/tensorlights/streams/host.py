"""Simulates the parameter servers of one host: workers compute, push and pull, each by a fluid stream. Pure.

Only the servers' own link counts, each way. What is pushed shares the way in alike, and ``Order`` divides the way out.
A server answers when it has all pushes of its job. So a worker that gets its model late pushes late, and all others
of its job wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from controller.model import BITS_PER_BYTE
from evaluation.tensorlights.streams.orders import Load, OneQueue, Order, Shares, Stream
from host_reporter.nic.tensorlights.bands import turn_at
from simulator.network import PAYLOAD_SHARE
from topologies.experiments.experiment import JobPlan
from topologies.trainer.barriers.record import ServerMoments, WorkerMoments
from topologies.trainer.barriers.waits import BarrierWait, waits

_ROUNDING = 1e-9
"""What is left of a transfer after rounding is less than so many seconds of the link."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A job's completion time in seconds, and its waits."""

    jct: float
    barrier: BarrierWait | None


@dataclass(slots=True)
class _Job:
    """A job on its way. Moments are lists by worker."""

    plan: JobPlan
    ready: list[list[float]]
    entered: list[list[float]]
    pushed: list[list[float]]
    opened: list[float] = field(default_factory=list)
    pulled: int = 0

    @classmethod
    def of(cls, plan: JobPlan) -> _Job:
        workers = range(len(plan.hosts) - 1)
        return cls(plan, [[plan.arrival] for _ in workers], [[] for _ in workers], [[] for _ in workers])

    @property
    def has_ended(self) -> bool:
        """Whether every worker has the model of the last iteration."""
        return self.pulled == len(self.ready) * self.plan.iterations

    def result(self) -> Simulated:
        """Returns the times of a job that has ended."""
        workers = [
            WorkerMoments(tuple(ready), tuple(entered)) for ready, entered in zip(self.ready, self.entered, strict=True)
        ]
        server = ServerMoments(tuple(map(tuple, self.pushed)), tuple(self.opened))
        end = max(moments[-1] for moments in self.ready)
        return Simulated(end - self.plan.arrival, waits(workers, server, self.plan.compute_seconds))


class _Host:
    """One host with servers."""

    def __init__(self, plans: Sequence[JobPlan], link_bps: float, order: Order) -> None:
        self._jobs = [_Job.of(plan) for plan in plans]
        self._rate = link_bps * PAYLOAD_SHARE / BITS_PER_BYTE
        self._order = order
        self._now = 0.0
        self._computing = [
            (job.plan.arrival + job.plan.compute_seconds, Stream(number, worker))
            for number, job in enumerate(self._jobs)
            for worker in range(len(job.ready))
        ]
        heapify(self._computing)
        self._pushing: dict[Stream, float] = {}
        self._pulling: dict[Stream, float] = {}

    def run(self) -> list[Simulated]:
        """Run until every job has ended. Returns their results in the order of the jobs."""
        while self._computing or self._pushing or self._pulling:
            into = self._divided(self._pushing, _EQUAL)
            out = self._divided(self._pulling, self._order)
            seconds = max(0.0, self._until_next(into, out))
            self._now += seconds
            for stream in _finished(self._pushing, into, seconds):
                self._note_push(stream)
            for stream in _finished(self._pulling, out, seconds):
                self._note_pull(stream)
            while self._computing and self._computing[0][0] <= self._now + _ROUNDING:
                self._note_computed(heappop(self._computing)[1])
        return [job.result() for job in self._jobs]

    def _divided(self, streams: Mapping[Stream, float], order: Order) -> Shares:
        if not streams:
            return {}
        living = [number for number, job in enumerate(self._jobs) if not job.has_ended]
        return order.shares(Load(streams, living, self._now))

    def _until_next(self, into: Shares, out: Shares) -> float:
        """Returns the seconds until a worker has computed, a transfer ends, or the order changes by itself."""
        ends = [self._pushing[stream] / share for stream, share in into.items()]
        ends += [self._pulling[stream] / share for stream, share in out.items()]
        if self._computing:
            ends.append(self._computing[0][0] - self._now)
        if (rotate_seconds := self._order.rotate_seconds) is not None:
            ends.append((turn_at(self._now, rotate_seconds) + 1) * rotate_seconds - self._now)
        return min(ends)

    def _note_computed(self, stream: Stream) -> None:
        job = self._jobs[stream.job]
        job.entered[stream.worker].append(self._now)
        self._pushing[stream] = job.plan.model_bytes / self._rate

    def _note_push(self, stream: Stream) -> None:
        job = self._jobs[stream.job]
        job.pushed[stream.worker].append(self._now)
        barriers = len(job.opened) + 1
        if all(len(moments) == barriers for moments in job.pushed):
            job.opened.append(self._now)
            self._pulling |= {
                Stream(stream.job, worker): job.plan.model_bytes / self._rate for worker in range(len(job.ready))
            }

    def _note_pull(self, stream: Stream) -> None:
        job = self._jobs[stream.job]
        job.pulled += 1
        job.ready[stream.worker].append(self._now)
        if len(job.ready[stream.worker]) <= job.plan.iterations:
            heappush(self._computing, (self._now + job.plan.compute_seconds, stream))


_EQUAL = OneQueue()


def simulate(plans: Sequence[JobPlan], link_bps: float, order: Order) -> Mapping[str, Simulated]:
    """Returns what the jobs of one host take and wait. They are numbered by launch."""
    by_launch = sorted(plans, key=lambda plan: plan.arrival)
    results = _Host(by_launch, link_bps, order).run()
    return {plan.id: result for plan, result in zip(by_launch, results, strict=True)}


def _finished(left: dict[Stream, float], shares: Shares, seconds: float) -> list[Stream]:
    """Serve streams for so long. Returns those that have ended, which are taken away."""
    for stream, share in shares.items():
        left[stream] -= share * seconds
    ended = [stream for stream in shares if left[stream] <= _ROUNDING]
    for stream in ended:
        del left[stream]
    return ended

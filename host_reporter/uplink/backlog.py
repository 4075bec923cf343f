"""What is to be reported to the controller, and in which order. Bounded; uses neither network nor clock.

While the controller is away, old points are thinned: of a job that holds too many, every second one of its older half
goes, so its newest points, its first one and its end are kept. Some of what was taken is remembered too: a controller
that has lost its memory is told again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from controller.model import Progress
from controller.wire import MAX_TRAFFIC, JobReport, JobSpec, JobTraffic, ProgressPoint, Threshold
from host_reporter.discovery.traffic_report import fitting
from host_reporter.marking.rules_text import Sent
from host_reporter.readers.points import MAX_PENDING, thin

MAX_PENDING_IN_ALL = 50_000
MAX_KEPT = 500
MAX_RUNS = 4_096
BATCH_POINTS = 5_000
BATCH_JOBS = 4_000
FIRST_RETRY_SECONDS = 0.5
MOST_RETRY_SECONDS = 30.0


class State(Enum):
    """Whether the controller knows a run."""

    NEW = auto()
    KNOWN = auto()
    REFUSED = auto()


@dataclass(eq=False)
class Run:
    """One run of a job, from its file's appearance to its end.

    ``threshold`` is what the controller waits for, ``is_urgent`` whether a pending point has reached it, and
    ``is_reported`` whether a batch has reported that this agent follows the run, and that it has diverged if it has.
    """

    job: str
    spec: JobSpec | None
    state: State
    pending: list[Progress] = field(default_factory=list)
    kept: list[Progress] = field(default_factory=list)
    diverged: bool = False
    unread: str | None = None
    ended: bool = False
    ended_at: float | None = None
    threshold: Threshold | None = None
    is_urgent: bool = False
    is_reported: bool = False
    not_before: float = 0.0
    retry_seconds: float = 0.0

    def put_off(self, now: float) -> None:
        """Delay the next call for this run, longer each time."""
        self.not_before = now + self.retry_seconds
        self.retry_seconds = min(max(self.retry_seconds * 2, FIRST_RETRY_SECONDS), MOST_RETRY_SECONDS)

    def settle(self) -> None:
        """Reset the delay after a success."""
        self.not_before = self.retry_seconds = 0.0


@dataclass(frozen=True)
class Registration:
    """A call to make: ``PUT /v1/jobs/{id}``."""

    run: Run
    spec: JobSpec


@dataclass(frozen=True)
class Batch:
    """A call to make: ``POST`` these parts as number ``seq``. Until the answer the runs do not hold the points."""

    seq: int
    parts: tuple[JobReport, ...]
    points: Mapping[Run, tuple[Progress, ...]]
    traffic: tuple[JobTraffic, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether there may be more to report."""
        return (
            len(self.parts) >= BATCH_JOBS
            or len(self.traffic) >= MAX_TRAFFIC
            or sum(map(len, self.points.values())) >= BATCH_POINTS
        )


class Backlog:
    """The runs in the order in which they began. Times are of any monotonic clock."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._current: dict[str, Run] = {}
        self._seq = 0
        self._totals: dict[str, Sent] = {}
        self._unsent: set[str] = set()
        self._traffic: dict[str, JobTraffic] = {}
        self._links: dict[str, JobTraffic] = {}
        self.thinned = 0

    # What is new ---------------------------------------------------------------------------------------------------

    def declare(self, job: str, spec: JobSpec | None) -> None:
        """Note a job that has begun, or whose spec has changed."""
        run = self._current.get(job)
        if run is None:
            run = Run(job, spec, State.KNOWN if spec is None else State.NEW)
            self._current[job] = run
            self._runs.append(run)
            self._drop_oldest()
        elif run.spec != spec or run.state is State.REFUSED:
            run.spec, run.state = spec, State.KNOWN if spec is None else State.NEW
            run.settle()

    def add(self, job: str, points: Iterable[Progress]) -> None:
        """Note the progress of a declared job."""
        run = self._current[job]
        new = list(points)
        run.pending.extend(new)
        if run.threshold is not None:
            run.is_urgent |= any(map(run.threshold.is_reached, (point.metric for point in new)))
        if len(run.pending) > MAX_PENDING:
            self._thin(run, MAX_PENDING)
        while sum(len(each.pending) for each in self._runs) > MAX_PENDING_IN_ALL:
            longest = max(self._runs, key=lambda each: len(each.pending))
            self._thin(longest, len(longest.pending) * 3 // 4)

    def diverge(self, job: str) -> None:
        """The run of a declared job has diverged."""
        run = self._current[job]
        if not run.diverged:
            run.diverged, run.is_reported = True, False

    def note_unread(self, job: str, reason: str) -> None:
        """Why the progress of a declared job cannot be read; empty: it can."""
        run = self._current[job]
        if reason != (run.unread or ""):
            run.unread, run.is_reported = reason, False

    def end(self, job: str, at: float | None = None) -> None:
        """A declared job has ended, ``at`` by the wall's clock; the same id may be declared again."""
        run = self._current.pop(job)
        run.ended, run.ended_at = True, at
        if run.state is State.REFUSED:
            self._runs.remove(run)

    def end_earlier(self, job: str, at: float) -> None:
        """A job that an agent before this one began has ended, ``at`` by the wall's clock, while there was no agent."""
        # This agent reports the end of what it has begun itself.
        if not any(run.job == job for run in self._runs):
            self._runs.append(Run(job, None, State.KNOWN, ended=True, ended_at=at))
            self._drop_oldest()

    def count_sent(self, totals: Mapping[str, Sent]) -> None:
        """Note the bytes that each job has sent from this host, by the agent's present count."""
        self._unsent = {job for job, sent in totals.items() if self._totals.get(job) != sent} | (
            self._unsent & totals.keys()
        )
        self._totals = dict(totals)

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        """Note the traffic of jobs. The latest of each job waits, with links that were not reported yet."""
        for traffic in parts:
            before = self._traffic.get(traffic.job)
            part = traffic
            if traffic.links is None and before is not None and before.links is not None:
                part = traffic.model_copy(update={"links": before.links, "left_out": before.left_out})
            self._traffic[part.job] = part
            if part.links is not None:
                self._links[part.job] = part
        for latest in (self._traffic, self._links):
            for job in latest.keys() - self._current.keys():
                del latest[job]

    # What is to do -------------------------------------------------------------------------------------------------

    def next_call(self, now: float, *, lease: bool, progress: bool = True) -> Registration | Batch | None:
        """Returns the next call. With ``lease`` a batch is due even if empty, with ``progress`` even if not urgent.

        Ends go before jobs that begin after them.
        """
        ready = self._ready(now)
        # An end may free what a new job claims. A new job must not wait for other news, which never ceases.
        urgent = any(_has_news(run) and (run.ended or run.is_urgent) for run in ready)
        if lease or urgent or any(part.links is not None for part in self._reportable_traffic(ready)):
            return self._batch(ready, lease=lease)
        for run in ready:
            if run.state is State.NEW and run.spec is not None:
                return Registration(run, run.spec)
        # This must not wait: the controller expects an end only of jobs that it knows to be followed.
        counted = self._unsent or self._reportable_traffic(ready)
        if any(_has_news(run) and (progress or not run.is_reported) for run in ready) or (progress and counted):
            return self._batch(ready, lease=lease)
        return None

    def next_retry(self, now: float) -> float | None:
        """Returns when the next delayed run is due; None where no run is delayed."""
        return min((run.not_before for run in self._runs if run.not_before > now), default=None)

    @property
    def has_news(self) -> bool:
        """Whether anything waits to be reported."""
        return any(run.pending or run.ended or run.state is State.NEW or _has_news(run) for run in self._runs)

    def has_progress(self, now: float) -> bool:
        """Returns whether a batch would hold more than the lease."""
        ready = self._ready(now)
        return bool(self._unsent or self._reportable_traffic(ready)) or any(_has_news(run) for run in ready)

    # How it went ---------------------------------------------------------------------------------------------------

    def registered(self, call: Registration, *, created: bool) -> None:
        """Note that the controller knows the run. If it is new there, all remembered points are reported again."""
        run = call.run
        if run.spec == call.spec:
            run.state = State.KNOWN
        if created:
            run.pending, run.kept = run.kept + run.pending, []
            run.is_reported = False
            if (part := self._links.get(run.job)) is not None:
                self._traffic.setdefault(run.job, part)
        run.not_before = 0.0

    def not_registered(self, call: Registration, now: float, *, retry: bool) -> None:
        """Note that the controller refused the job: for now with ``retry``, else until its file changes."""
        run = call.run
        if retry:
            run.put_off(now)
        elif run.spec == call.spec:
            run.state, run.pending = State.REFUSED, []
            if run.ended:
                self._runs.remove(run)

    def registers_as(self, call: Registration, spec: JobSpec) -> None:
        """Try again with ``spec``, after the controller refused the job."""
        run = call.run
        if run.spec == call.spec:
            run.spec, run.state = spec, State.NEW
        run.settle()

    def answered(
        self, batch: Batch, refused: Collection[str], now: float, urgent: Mapping[str, Threshold] | None = None
    ) -> None:
        """Note that the controller accepted all but the ``refused`` jobs, and waits for ``urgent`` values."""
        # A run may have ended since the batch was made; then its end is still to be reported.
        over = {part.job for part in batch.parts if part.ended}
        for run, points in batch.points.items():
            run.threshold = urgent.get(run.job) if urgent else None
            if run.job in refused and not run.ended:
                self._refused(run, points, now)
                continue
            run.kept.extend(points)
            if len(run.kept) > MAX_KEPT:
                run.kept = thin(run.kept, MAX_KEPT)
            run.settle()
            if run.job in over and run in self._runs:
                self._runs.remove(run)

    def _refused(self, run: Run, points: tuple[Progress, ...], now: float) -> None:
        if run.spec is None:
            # Another program registers the job, and may be late.
            run.pending[:0] = points
            self._thin(run, MAX_PENDING)
        else:
            run.kept.extend(points)
            run.state = State.NEW
        run.put_off(now)

    # Inside --------------------------------------------------------------------------------------------------------

    def _ready(self, now: float) -> list[Run]:
        """Returns the runs that may be reported: not delayed, and the first run of their job."""
        firsts = {run.job: run for run in reversed(self._runs)}
        return [run for run in self._runs if firsts[run.job] is run and run.not_before <= now]

    def _batch(self, ready: Iterable[Run], *, lease: bool) -> Batch:
        sent_points: dict[Run, tuple[Progress, ...]] = {}
        parts: dict[str, JobReport] = {}
        room = BATCH_POINTS
        for run in ready:
            if room <= 0 or len(parts) >= BATCH_JOBS:
                break
            if run.state is not State.KNOWN or not (lease or _has_news(run)):
                continue
            points, run.pending = tuple(run.pending[:room]), run.pending[room:]
            run.is_urgent, run.is_reported = False, True
            room -= len(points)
            sent_points[run] = points
            over = run.ended and not run.pending
            parts[run.job] = JobReport(
                job=run.job,
                points=tuple(ProgressPoint(iteration=p.iteration, time=p.time, metric=p.metric) for p in points),
                **self._counted(run.job),
                followed=True,
                diverged=run.diverged,
                unread=run.unread,
                ended=over,
                # A late report of this end must not end the job's next run.
                as_of=run.ended_at if over else None,
            )
        self._unsent -= parts.keys()
        for job in sorted(self._unsent)[: BATCH_JOBS - len(parts)]:
            parts[job] = JobReport(job=job, **self._counted(job))
            self._unsent.discard(job)
        traffic = fitting(self._reportable_traffic(ready)[:MAX_TRAFFIC])
        for part in traffic:
            del self._traffic[part.job]
        self._seq += 1
        return Batch(self._seq, tuple(parts.values()), sent_points, traffic)

    def _reportable_traffic(self, ready: Iterable[Run]) -> list[JobTraffic]:
        """Returns the traffic of jobs whose run the controller knows."""
        if not self._traffic:
            return []
        return [self._traffic[run.job] for run in ready if run.state is State.KNOWN and run.job in self._traffic]

    def _counted(self, job: str) -> dict[str, Any]:
        sent = self._totals.get(job)
        return {} if sent is None else {"sent_bytes": sent.bytes, "counter": sent.counter}

    def _thin(self, run: Run, most: int) -> None:
        before = len(run.pending)
        run.pending = thin(run.pending, most)
        self.thinned += before - len(run.pending)

    def _drop_oldest(self) -> None:
        if len(self._runs) > MAX_RUNS:
            oldest = next((run for run in self._runs if run.ended), None)
            if oldest is not None:
                self._runs.remove(oldest)


def _has_news(run: Run) -> bool:
    return run.state is State.KNOWN and bool(run.pending or run.ended or not run.is_reported)

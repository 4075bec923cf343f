"""What a recording shows: how far each run of a job had got when, the hosts' rates, and what was in force. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.model import endpoint
from simulator.errors import InputError
from simulator.recorded.lines import Data, Description, Gap, Host, Job, Plan, Settings

UNORDERED = "fair"
"""The policy that a network follows where nothing is enforced."""


class Point(NamedTuple):
    """How far a job had got at a time: iterations, and the latest value of its metric; None: it had none."""

    time: float
    done: float
    metric: float | None


@dataclass(slots=True)
class Run:
    """A run of a job. ``seen`` is the time of its first event, ``begun_seen``: whether the recording has its start.

    ``points`` are in order, one for each event that shows more iterations or another metric. ``ended``: its end is in
    the recording.
    """

    id: str
    seen: float
    begun_seen: bool
    points: list[Point] = field(default_factory=list)
    description: Description | None = None
    ended: bool = False
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as a whole. ``rates`` has each host's rate out of it and into it, in bit/s.

    ``interfaces`` has the same of the endpoints of each host that has several interfaces.
    ``policy`` was followed for longest; ``policies`` has the seconds of all. ``options`` are those of ``policy``, where
    they are known. None: not known.
    """

    source: str
    seconds: float
    runs: tuple[Run, ...]
    rates: Mapping[str, tuple[float, float]]
    policies: Mapping[str, float]
    options: Mapping[str, Any]
    period: float | None
    classes: int | None
    missed: int
    interfaces: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def policy(self) -> str | None:
        """The policy that the network followed for longest; None: the recording has no plan."""
        return max(self.policies, key=lambda name: self.policies[name]) if self.policies else None


class _Clock:
    """The offset between the recording's clock and the Unix epoch, as reports show it."""

    def __init__(self) -> None:
        self.offset: float | None = None

    def look(self, time: float, last_report: float | None) -> None:
        """An event at ``time`` tells of a report that had come before it."""
        if last_report is not None:
            offset = last_report - time
            self.offset = offset if self.offset is None else max(self.offset, offset)

    def of(self, epoch: float) -> float | None:
        """Returns a time since the epoch in the recording's clock; None: the offset is not known."""
        return None if self.offset is None else epoch - self.offset


_SLACK_SECONDS = 2.0
"""An arrival so shortly before the recording is within it: an event comes up to a second after what it tells."""


def recording(events: Iterable[tuple[float, Data]], source: str) -> Recording:
    """Returns what the events of a recording show. Raises InputError for one without any."""
    return _Reader(source).read(events)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._runs: list[Run] = []
        self._open: dict[str, Run] = {}
        self._count: dict[str, int] = {}
        self._rates: dict[str, tuple[float, float]] = {}
        self._interfaces: dict[str, dict[str, tuple[float, float]]] = {}
        self._clock = _Clock()
        self._settings = Settings()
        self._settings_of: dict[str, Settings] = {}
        self._planned: str | None = None
        self._policies: dict[str, float] = {}
        self._missed = 0
        self._first: float | None = None
        self._last = 0.0

    def read(self, events: Iterable[tuple[float, Data]]) -> Recording:
        for time, data in events:
            self._advance(time)
            match data:
                case Job():
                    self._job(time, data)
                case Plan():
                    self._planned = data.policy
                case Settings():
                    self._settings = data
                    if data.policy is not None:
                        self._settings_of[data.policy] = data
                case Host():
                    if data.egress_bps is not None and data.ingress_bps is not None:
                        self._rates[data.name] = (data.egress_bps, data.ingress_bps)
                        self._interfaces[data.name] = {
                            endpoint(data.name, link.interface): (link.egress_bps, link.ingress_bps)
                            for link in data.links
                        }
                case Gap():
                    self._missed += data.last - data.first + 1
        if self._first is None:
            raise InputError(f"{self._source}: has no events of jobs, plans, hosts or settings")
        policies = {name: seconds for name, seconds in self._policies.items() if seconds > 0} or self._policies
        longest = max(policies, key=lambda name: policies[name]) if policies else None
        known = self._settings_of.get(longest or "", Settings())
        return Recording(
            source=self._source,
            seconds=self._last - self._first,
            runs=tuple(self._runs),
            rates=self._rates,
            interfaces={name: links for name, links in self._interfaces.items() if links},
            policies=policies,
            options=known.policy_options or {},
            period=self._settings.period_seconds,
            classes=self._settings.classes,
            missed=self._missed,
        )

    def _advance(self, time: float) -> None:
        """Let the time pass until ``time`` under what was in force. An event may be a little older than that before."""
        if self._first is None:
            self._first = self._last = time
        followed = self._followed
        if followed is not None:
            self._policies[followed] = self._policies.get(followed, 0.0) + max(time - self._last, 0.0)
        self._last = max(self._last, time)

    @property
    def _followed(self) -> str | None:
        if self._planned is not None and (self._settings.pause or self._settings.enforce == ()):
            return UNORDERED
        return self._planned

    def _job(self, time: float, job: Job) -> None:
        run = self._open.get(job.id)
        progress = job.progress
        if progress is None:  # it was removed
            if run is not None:
                run.is_closed = True
            return
        self._clock.look(time, progress.last_report)
        went_back = run is not None and run.points and progress.iterations_done < run.points[-1].done
        if run is None or went_back or (run.is_closed and job.state != "ended"):
            run = self._new_run(time, job)
        if job.description is not None:
            run.description = job.description
        if job.state != "waiting" and not run.is_closed:
            _note(run, Point(time, progress.iterations_done, progress.last_metric))
        if job.state == "ended":
            run.ended = run.is_closed = True

    def _new_run(self, time: float, job: Job) -> Run:
        number = self._count[job.id] = self._count.get(job.id, 0) + 1
        name = job.id if number == 1 else f"{job.id}, run {number}"
        run = Run(name, time, self._begins_here(time, job, number))
        self._open[job.id] = run
        self._runs.append(run)
        return run

    def _begins_here(self, time: float, job: Job, number: int) -> bool:
        """Returns whether the recording has the start of a run whose first event this is."""
        if number > 1 or job.state == "waiting":
            return True
        if job.progress is not None and job.progress.iterations_done == 0:
            return True
        arrival = self._clock.of(job.description.arrival) if job.description is not None else None
        first = self._first if self._first is not None else time
        return arrival is not None and arrival >= first - _SLACK_SECONDS


def _note(run: Run, point: Point) -> None:
    """Add a point, if it shows something new."""
    if not run.points or (point.done, point.metric) != (run.points[-1].done, run.points[-1].metric):
        run.points.append(point)

"""Decides when jobs' connections are reported: changed links at once, bytes regularly, and all of it now and then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from controller.wire import JobTraffic
from host_reporter.discovery.sockets.links import Link
from host_reporter.discovery.traffic_report import NO_INTERFACES, FoundTraffic, fitting, traffic_report
from host_reporter.notices import Notices

BYTES_SECONDS = 5.0
"""Report bytes this often while the links stay the same."""

REPEAT_SECONDS = 30.0
"""Report everything again this often, for a controller that has lost it."""

MAX_UNKNOWN_LOGGED = 20
"""Log at most this many unknown addresses of a job one by one."""

_NEVER = float("-inf")


class Receiver(Protocol):
    """Receives the traffic of jobs."""

    def add_traffic(self, parts: Iterable[JobTraffic]) -> None:
        """Report the traffic of these jobs."""


@dataclass
class _Job:
    """The last report of a job. ``counter`` is the number of its byte counter, which begins when it is followed."""

    counter: int
    found: FoundTraffic | None = None
    at: float = _NEVER
    whole_at: float = _NEVER
    unknown: set[str] = field(default_factory=set)

    @property
    def links(self) -> frozenset[Link] | None:
        """The links of the last report; None where nothing was reported."""
        return self.found.links if self.found is not None else None


class Reports:
    """The reports of the followed jobs on ``host``. Times are of a monotonic clock. It is not thread-safe."""

    def __init__(
        self, host: str, receiver: Receiver, notices: Notices, *, bytes_seconds: float = BYTES_SECONDS
    ) -> None:
        self._bytes_seconds = bytes_seconds
        self._host = host
        self._receiver = receiver
        self._notices = notices
        self._jobs: dict[str, _Job] = {}
        self._counter = 0

    def begin(self, job: str) -> None:
        """Begin to report a job."""
        self._counter += 1
        self._jobs[job] = _Job(self._counter)

    def end(self, jobs: Iterable[str]) -> None:
        """End the reports of these jobs: the last report of each says that it has no traffic here."""
        gone = {job: self._jobs.pop(job) for job in jobs if job in self._jobs}
        for job in gone:
            self._notices.clear(f"unknown {job}")
        parts = [
            JobTraffic(job=job, as_of=time.time(), counter=record.counter, links=())
            for job, record in gone.items()
            if record.found is not None
        ]
        if parts:
            self._receiver.add_traffic(parts)

    def report_all_again(self) -> None:
        """Report everything at the next call, because addresses belong to other hosts now."""
        for record in self._jobs.values():
            record.whole_at = _NEVER

    def all_due(self) -> None:
        """Report all bytes at the next call, which is the last one."""
        for record in self._jobs.values():
            record.at = _NEVER

    def due(self, now: float) -> set[str]:
        """Returns the jobs whose bytes are due to be reported."""
        return {job for job, record in self._jobs.items() if now - record.at >= self._bytes_seconds}

    def report(
        self,
        found: Mapping[str, FoundTraffic],
        addresses: Mapping[str, str],
        now: float,
        interfaces: Mapping[str, str] = NO_INTERFACES,
    ) -> None:
        """Report the due parts of ``found``, the traffic of each job.

        ``addresses`` gives the host of each address, and ``interfaces`` its interface where the host has several.
        """
        parts = []
        for job, new in found.items():
            record = self._jobs[job]
            is_whole = record.links != new.links or now - record.whole_at >= REPEAT_SECONDS
            if not is_whole and (now - record.at < self._bytes_seconds or new == record.found):
                continue
            report = traffic_report(
                job, new, addresses, self._host, as_of=time.time(), counter=record.counter, interfaces=interfaces
            )
            parts.append(report.traffic if is_whole else report.traffic.model_copy(update={"links": None}))
            record.found, record.at = new, now
            if is_whole:
                record.whole_at = now
            self._say_unknown(job, record, report.unknown)
        if parts:
            self._receiver.add_traffic(fitting(parts))

    def _say_unknown(self, job: str, record: _Job, unknown: frozenset[str]) -> None:
        for address in sorted(unknown - record.unknown):
            if len(record.unknown) >= MAX_UNKNOWN_LOGGED:
                self._notices.say(f"unknown {job}", f"job {job}: it talks to more addresses that are no known host's")
                return
            record.unknown.add(address)
            self._notices.say(
                f"unknown {job} {address}",
                f"job {job}: {address} is no host of the controller's settings; its traffic there is not ordered by "
                "the switch",
            )

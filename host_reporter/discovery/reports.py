"""Decides when jobs' connections are reported: changed links at once, bytes regularly, everything again at times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from controller.wire import JobTraffic
from host_reporter.discovery.links import Link
from host_reporter.discovery.traffic_report import FoundTraffic, fitting, traffic_report
from host_reporter.notices import Notices

BYTES_SECONDS = 5.0
"""Report bytes this often while the links stay the same."""

RETELL_SECONDS = 30.0
"""Report everything again this often, for a controller that has lost it."""

MAX_UNKNOWN_TOLD = 20
"""Log at most so many unknown addresses of a job one by one."""

_NEVER = float("-inf")


class Receiver(Protocol):
    """Reports what is found."""

    def found(self, parts: Iterable[JobTraffic]) -> None:
        """Report the traffic of these jobs."""


@dataclass
class _Job:
    """What was last reported of a job. ``counter`` numbers its count of bytes, which begins when it is followed."""

    counter: int
    found: FoundTraffic | None = None
    at: float = _NEVER
    whole_at: float = _NEVER
    unknown: set[str] = field(default_factory=set)

    @property
    def links(self) -> frozenset[Link] | None:
        """The links that were last reported; None: nothing was reported."""
        return self.found.links if self.found is not None else None


class Reports:
    """Of the jobs that are followed on ``host``. Times are of a clock that only goes forward. For one thread."""

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
        """A job is followed from now on."""
        self._counter += 1
        self._jobs[job] = _Job(self._counter)

    def end(self, jobs: Iterable[str]) -> None:
        """These are followed no more: where one goes on, nothing of it is found here from now on."""
        gone = {job: self._jobs.pop(job) for job in jobs if job in self._jobs}
        for job in gone:
            self._notices.clear(f"unknown {job}")
        parts = [
            JobTraffic(job=job, as_of=time.time(), counter=record.counter, links=())
            for job, record in gone.items()
            if record.found is not None
        ]
        if parts:
            self._receiver.found(parts)

    def tell_all_again(self) -> None:
        """Addresses are other hosts' now."""
        for record in self._jobs.values():
            record.whole_at = _NEVER

    def all_due(self) -> None:
        """The next look is the last one: bytes do not wait for another."""
        for record in self._jobs.values():
            record.at = _NEVER

    def due(self, now: float) -> set[str]:
        """Returns the jobs whose bytes are due to be reported."""
        return {job for job, record in self._jobs.items() if now - record.at >= self._bytes_seconds}

    def tell(self, found: Mapping[str, FoundTraffic], addresses: Mapping[str, str], now: float) -> None:
        """Report what is due of what was found; ``addresses``: hosts by address."""
        parts = []
        for job, new in found.items():
            record = self._jobs[job]
            is_whole = record.links != new.links or now - record.whole_at >= RETELL_SECONDS
            if not is_whole and (now - record.at < self._bytes_seconds or new == record.found):
                continue
            report = traffic_report(job, new, addresses, self._host, as_of=time.time(), counter=record.counter)
            parts.append(report.traffic if is_whole else report.traffic.model_copy(update={"links": None}))
            record.found, record.at = new, now
            if is_whole:
                record.whole_at = now
            self._say_unknown(job, record, report.unknown)
        if parts:
            self._receiver.found(fitting(parts))

    def _say_unknown(self, job: str, record: _Job, unknown: frozenset[str]) -> None:
        for address in sorted(unknown - record.unknown):
            if len(record.unknown) >= MAX_UNKNOWN_TOLD:
                self._notices.say(f"unknown {job}", f"job {job}: it talks to more addresses that are no known host's")
                return
            record.unknown.add(address)
            self._notices.say(
                f"unknown {job} {address}",
                f"job {job}: {address} is no host of the controller's settings; its traffic there is not ordered by "
                "the switch",
            )

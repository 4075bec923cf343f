"""One job that is followed: what was told of it, and what is to be told next."""

from __future__ import annotations

from typing import Protocol

from controller.wire import JobSpec
from host_reporter.backlog import MAX_PENDING, Told, thin
from host_reporter.job_file import JobFile
from host_reporter.parse import Ended, Event, Point
from host_reporter.sieve import Sieve
from host_reporter.source import Source


class Receiver(Protocol):
    """Whom progress is handed to."""

    def declare(self, job: str, spec: JobSpec | None) -> None:
        """A job has begun, or its spec is another one."""

    def add(self, job: str, points: list[Told]) -> None:
        """A declared job has got on."""

    def end(self, job: str) -> None:
        """A declared job has ended."""

    def end_earlier(self, job: str, at: float) -> None:
        """A job that an agent before this one began has ended, ``at`` by the wall's clock, while there was no agent."""


class Followed:
    """A job and its progress. ``declared``: the receiver knows its current run; ``since``: when it was begun.

    At first it catches up with what was there before: a progress file may hold several runs of a job, and only the last
    of them is told of. ``complaint`` is what was not believed of its progress, if anything. ``over_at``: when the last
    run was over, if that was before we came, by the wall's clock; None: it was not, or another has begun since.
    """

    def __init__(self, file: JobFile, since: float) -> None:
        self.file = file
        self.since = since
        self.source: Source = file.source()
        self.declared = False
        self.complaint: str | None = None
        self.over_at: float | None = None
        self._sieve = Sieve()
        self._earlier: list[Told] | None = []
        self._is_over = False

    @property
    def is_catching_up(self) -> bool:
        """Whether what is read now was there before."""
        return self._earlier is not None

    def declare(self, receiver: Receiver) -> None:
        """Say that its run has begun, or what its spec is now."""
        receiver.declare(self.file.id, self.file.spec)
        self.declared = True
        self.over_at = None

    def end(self, receiver: Receiver) -> None:
        """Say that its run has ended, if it had begun."""
        if self.declared:
            receiver.end(self.file.id)
        self.declared = False
        self._sieve = Sieve()

    def take(self, events: list[Event], wall: float, receiver: Receiver) -> None:
        """What its file says anew, at a time in seconds since the epoch."""
        if self._earlier is not None:
            self._note(events, wall, self._earlier)
            self._earlier = thin(self._earlier, MAX_PENDING)
        else:
            self._hand_on(events, wall, receiver)

    def caught_up(self, wall: float, receiver: Receiver) -> bool:
        """All that was there before was read: tell its last run. Whether it goes on, or was over before we came."""
        points, self._earlier = self._earlier or [], None
        # A job whose progress ends with its end, and that was never begun by us, is not begun again.
        if self._is_over and not self.declared:
            self._sieve = Sieve()
            # The end may have come long after the last point, but not after its file was written, nor after now.
            last = points[-1].time if points else 0.0
            self.over_at = min(max(last, self.source.tail.modified or wall), wall)
            return False
        if not self.declared:
            self.declare(receiver)
        if points:
            receiver.add(self.file.id, points)
        if self._is_over:
            self.end(receiver)
        return True

    def _note(self, events: list[Event], wall: float, points: list[Told]) -> None:
        for event in events:
            if self._is_over:
                # This begins another run.
                self._is_over, self._sieve = False, Sieve()
                points.clear()
            if isinstance(event, Ended):
                self._is_over = True
            else:
                points += self._sifted(event, wall)

    def _hand_on(self, events: list[Event], wall: float, receiver: Receiver) -> None:
        """Declare, add and end what the events say. A point after an end begins a new run."""
        points: list[Told] = []
        for event in events:
            if isinstance(event, Ended):
                self._add(points, receiver)
                self.end(receiver)
                points = []
            else:
                points += self._sifted(event, wall)
        self._add(points, receiver)

    def _add(self, points: list[Told], receiver: Receiver) -> None:
        if points:
            if not self.declared:
                self.declare(receiver)
            receiver.add(self.file.id, points)

    def _sifted(self, point: Point, wall: float) -> tuple[Told, ...]:
        told = Told(point.iteration, wall if point.time is None else point.time, point.metric)
        believed = self._sieve.sift(told, self.file.spec.iterations if self.file.spec is not None else None)
        self.complaint = self.complaint or self._sieve.complaint
        return believed

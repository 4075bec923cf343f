"""Who receives the progress of the followed jobs: one receiver, or several as one."""

from __future__ import annotations

from typing import Protocol

from controller.model import Progress
from host_reporter.jobs.job import Spec


class Receiver(Protocol):
    """Receives the progress of the followed jobs."""

    def declare(self, job: str, spec: Spec | None) -> None:
        """Note a job that has begun, or whose spec has changed."""

    def add(self, job: str, points: list[Progress]) -> None:
        """Note the progress of a declared job."""

    def diverge(self, job: str) -> None:
        """The run of a declared job has diverged."""

    def note_unread(self, job: str, reason: str) -> None:
        """Why the progress of a declared job cannot be read, without a line of it; empty: it can."""

    def end(self, job: str) -> None:
        """Note that a declared job has ended."""

    def end_earlier(self, job: str, at: float) -> None:
        """Note that an earlier agent's job ended while no agent ran, ``at`` seconds since the epoch."""


class Receivers:
    """Several receivers as one. They are called in the given order."""

    def __init__(self, *receivers: Receiver) -> None:
        self._receivers = receivers

    def declare(self, job: str, spec: Spec | None) -> None:
        """Call ``declare`` of each receiver."""
        for receiver in self._receivers:
            receiver.declare(job, spec)

    def add(self, job: str, points: list[Progress]) -> None:
        """Call ``add`` of each receiver."""
        for receiver in self._receivers:
            receiver.add(job, points)

    def diverge(self, job: str) -> None:
        """Call ``diverge`` of each receiver."""
        for receiver in self._receivers:
            receiver.diverge(job)

    def note_unread(self, job: str, reason: str) -> None:
        """Call ``note_unread`` of each receiver."""
        for receiver in self._receivers:
            receiver.note_unread(job, reason)

    def end(self, job: str) -> None:
        """Call ``end`` of each receiver."""
        for receiver in self._receivers:
            receiver.end(job)

    def end_earlier(self, job: str, at: float) -> None:
        """Call ``end_earlier`` of each receiver."""
        for receiver in self._receivers:
            receiver.end_earlier(job, at)

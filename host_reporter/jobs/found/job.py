"""A job that its processes have told of: the part of it on this host, and where its progress is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from controller.wire.parts import PartSpec
from host_reporter.formats.events import Event
from host_reporter.jobs.job import JobProcesses
from host_reporter.readers.location import Location
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

Reader = Callable[[Location], ProgressSource]
"""Makes the source of what is at a location."""


@dataclass(frozen=True)
class FoundJob:
    """A job. ``location`` of None: this host reads no progress of it, since rank 0 is elsewhere or says nothing."""

    id: str
    spec: PartSpec
    processes: JobProcesses
    location: Location | None
    read: Reader = field(compare=False)
    study: None = None
    is_running: bool = True

    @property
    def followed(self) -> Path | None:
        """The file or folder of its progress."""
        return self.location.path if self.location is not None else None

    @property
    def progress_key(self) -> Location | None:
        """What tells where its progress is read."""
        return self.location

    def source(self) -> ProgressSource:
        """Returns its progress, from the beginning."""
        return self.read(self.location) if self.location is not None else NoProgress()


class NoProgress:
    """The source of a job without progress on this host: nothing ever comes, and nothing is missing."""

    matched = unmatched = 0
    samples: tuple[str, ...] = ()
    is_costly = has_begun = False
    is_there = True
    modified: float | None = None

    def poll(self, _limit: MatchLimit) -> tuple[list[Event], bool]:
        """Returns no events."""
        return [], False

    def rest(self, _limit: MatchLimit) -> list[Event]:
        """Returns no events."""
        return []

    def aim(self) -> None:
        """Do nothing: there is nothing to read."""

    def seems_over(self, _limit: MatchLimit) -> bool:
        """Returns False: only its processes tell the end."""
        return False

    def problem(self, *, final: bool = False) -> str | None:  # noqa: ARG002 - as of every source
        """Returns None: it is no problem that there is nothing."""
        return None

    def close(self) -> None:
        """Do nothing."""

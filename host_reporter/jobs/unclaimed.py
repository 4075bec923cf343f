"""Progress files that nobody follows: the two-line helper writes them, but no job file says what job it is."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

from controller.wire import NAME_PATTERN
from host_reporter.notices import Notices

GRACE_SECONDS = 5.0
"""Wait this long before a file is reported: its job file may come a moment after the training's first line."""

MAX_FILES = 1000
"""Look at no more files than this, because any user may write into the folder."""

MAX_TOLD = 20
"""Log at most so many files."""

SUFFIX = ".jsonl"

_NAME = re.compile(NAME_PATTERN)
_Stamp = tuple[int, int, int]


class UnclaimedProgress:
    """Looks through the helper's folder and logs each growing file that has no job file, once. Never raises.

    A file that nobody writes any more, such as that of a job that has ended, is not logged.
    """

    def __init__(
        self, folder: Path, jobs_folder: Path, notices: Notices, *, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self._grace_seconds = grace_seconds
        self._folder = folder
        self._jobs_folder = jobs_folder
        self._notices = notices
        # What is there before the agent comes may be long over; what comes later is new.
        self._idle: dict[str, _Stamp | None] = dict(self._list())
        self._growing_since: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, now: float, jobs: Collection[str]) -> None:
        """``now``: of a clock that only goes forward, in seconds; ``jobs``: the ids that have a job file."""
        present = self._list()
        for job in (self._idle.keys() | self._told) - present.keys():
            self._forget(job)
        for job, stamp in present.items():
            if job in jobs:
                self._forget(job)
                self._idle[job] = stamp
            elif self._idle.setdefault(job, None) != stamp:
                since = self._growing_since.setdefault(job, now)
                if now - since >= self._grace_seconds and (job in self._told or len(self._told) < MAX_TOLD):
                    self._tell(job)

    def _tell(self, job: str) -> None:
        self._told.add(job)
        self._notices.say(
            self._key(job),
            f"{self._folder / job}{SUFFIX} belongs to no job file, so its progress is not reported: write "
            f"{self._jobs_folder / job}.yaml with 'id: {job}', and under 'spec' the job's tasks and demand if nobody "
            "else registers it",
        )

    def _forget(self, job: str) -> None:
        self._idle.pop(job, None)
        self._growing_since.pop(job, None)
        if job in self._told:
            self._told.discard(job)
            self._notices.clear(self._key(job))

    @staticmethod
    def _key(job: str) -> str:
        return f"unclaimed {job}"

    def _list(self) -> dict[str, _Stamp]:
        """The plain files of the folder that could be a job's, by the job's id."""
        stamps: dict[str, _Stamp] = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in itertools.islice(entries, MAX_FILES):
                    job = entry.name.removesuffix(SUFFIX)
                    if job == entry.name or not _NAME.fullmatch(job):
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if stat.S_ISREG(status.st_mode):
                        stamps[job] = (status.st_ino, status.st_size, status.st_mtime_ns)
        except OSError:
            # Nobody has written anything, or nobody may.
            return {}
        return stamps

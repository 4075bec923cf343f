"""The trials of one study: which are followed, which wait for room, and which are over."""

from __future__ import annotations

import heapq
import os
import stat
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator

from host_reporter.jobs.job import JobFound, JobGone
from host_reporter.jobs.job_file import JobFile
from host_reporter.jobs.studies.trial_folder import SUFFIX

SILENT_SECONDS = 3600.0
"""A trial whose file has not changed for this long is over: its tuner was killed."""

MAX_LOOKED_AT = 256
"""One look checks at most this many files of trials that are not followed, so 10,000 files take ten seconds."""

Stamp = tuple[int, int, int]
"""Identifies a version of a file: inode, size, and time of change in nanoseconds."""


class Study:
    """One study. ``file`` is the job file of all its trials. A trial's name is its job's id.

    The file's stamp is kept for trials that are not followed. A trial that is over begins again when its stamp changes.
    """

    def __init__(self, file: JobFile) -> None:
        self.file = file
        self._followed: dict[str, Stamp] = {}
        self._waiting: dict[str, Stamp] = {}
        self._over: dict[str, Stamp] = {}
        self._turn: OrderedDict[str, None] = OrderedDict()
        self._names: frozenset[str] = frozenset()
        self._others: frozenset[str] = frozenset()

    @property
    def followed(self) -> tuple[str, ...]:
        """The trials that are followed."""
        return tuple(self._followed)

    @property
    def known(self) -> Iterable[str]:
        """All trials with a file."""
        return (*self._followed, *self._turn)

    @property
    def waiting(self) -> Collection[str]:
        """The trials that will be followed when there is room, or at the next look."""
        return self._waiting.keys()

    @property
    def is_full(self) -> bool:
        """Whether there are more trials at a time than are followed."""
        return bool(self._waiting)

    def trial(self, job: str) -> JobFile:
        """Returns the job file of one trial."""
        return self.file.trial(job.removeprefix(f"{self.file.id}."))

    def look(
        self, names: frozenset[str], wall: float, resting: Collection[str], others: frozenset[str]
    ) -> Iterator[JobFound | JobGone]:
        """Yields the trials that began and those that are over; see ``Trials.scan``. ``names`` have a file now."""
        if names is not self._names or others != self._others:
            yield from self._update_names(names, wall, others)
        for job, before in list(self._followed.items()):
            now = self._stamp(job, before)
            if now is None:
                self._forget(job)
                yield JobGone(job)
                continue
            self._followed[job] = now
            # Progress since the last look may belong to its next run.
            if (job in resting and before == now) or _is_silent(now, wall):
                del self._followed[job]
                self._put_aside(job, now, self._over)
                yield JobGone(job)
        for _ in range(min(MAX_LOOKED_AT, len(self._turn))):
            job = next(iter(self._turn))
            self._turn.move_to_end(job)
            self._check(job, wall)
        yield from self._begin()

    def _update_names(self, names: frozenset[str], wall: float, others: frozenset[str]) -> Iterator[JobGone]:
        """Note that files have come or gone, or that trials have got a job file of their own."""
        self._names, self._others = names, others
        for job in [job for job in self.known if job not in names or job in others]:
            # A trial with a job file of its own goes on by that.
            if self._forget(job) and job not in others:
                yield JobGone(job)
        for job in names - self._followed.keys() - self._turn.keys() - others:
            stamp = self._stamp(job, None)
            if stamp is not None:
                self._put_aside(job, stamp, self._over if _is_silent(stamp, wall) else self._waiting)

    def _check(self, job: str, wall: float) -> None:
        """Check the file of a trial that is not followed."""
        before = self._waiting.get(job) or self._over[job]
        now = self._stamp(job, before)
        if now is None:
            self._forget(job)
            return
        is_new = job in self._waiting or before != now
        self._put_aside(job, now, self._waiting if is_new and not _is_silent(now, wall) else self._over)

    def _begin(self) -> Iterator[JobFound]:
        """Follow the trials that have waited longest, as many as there is room for."""
        assert self.file.trials is not None
        room = self.file.trials.most - len(self._followed)
        if not self._waiting or room <= 0:
            return
        for job in heapq.nsmallest(room, self._waiting, key=lambda job: self._waiting[job][2]):
            self._followed[job] = self._waiting.pop(job)
            del self._turn[job]
            yield JobFound(self.trial(job))

    def _put_aside(self, job: str, stamp: Stamp, where: dict[str, Stamp]) -> None:
        self._waiting.pop(job, None)
        self._over.pop(job, None)
        where[job] = stamp
        self._turn.setdefault(job)

    def _forget(self, job: str) -> bool:
        """Forget a trial whose file is gone. Returns whether it was followed."""
        self._turn.pop(job, None)
        self._waiting.pop(job, None)
        self._over.pop(job, None)
        return self._followed.pop(job, None) is not None

    def _stamp(self, job: str, before: Stamp | None) -> Stamp | None:
        """Returns the stamp of a trial's file; ``before`` if it cannot be read, None if there is no plain file."""
        try:
            status = os.lstat(f"{self.file.followed}/{job}{SUFFIX}")
        except FileNotFoundError:
            return None
        except OSError:
            return before
        return (status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _is_silent(stamp: Stamp, wall: float) -> bool:
    return wall - stamp[2] / 1e9 > SILENT_SECONDS

"""The folder of job files: which appeared, changed or went away since it was last looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from controller.documents.plain_text import PlainTextError, decode
from host_reporter.jobs.job import JobFound, JobGone
from host_reporter.jobs.job_file import MAX_FILE_BYTES, SUFFIXES, JobFileError, read_job_file
from host_reporter.notices import Notices

UNFINISHED_SECONDS = 0.5
"""Report no problem of a file that is younger than this: it may still be being written."""

GONE_SECONDS = 0.1
"""Treat a file as removed after this time; an editor that replaces it is faster."""

_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Entry:
    stamp: _Stamp
    modified: float


@dataclass
class _Known:
    stamp: _Stamp | None
    """None: it is to be read again, whether it changes or not."""
    job_id: str | None = None
    missing_since: float | None = None
    is_twin: bool = False
    """Its text names the job of another file now, and was refused for that."""

    @property
    def waits(self) -> bool:
        """Whether it may be right once another file is away."""
        return self.job_id is None or self.is_twin


class _TwinError(JobFileError):
    """The job has a file already."""


@dataclass
class JobsDirectory:
    """Looks at a folder. ``scan`` never raises: a bad file is logged once, and the others go on."""

    path: Path
    progress_dir: Path
    notices: Notices
    _known: dict[Path, _Known] = field(default_factory=dict)
    _odd: set[Path] = field(default_factory=set)
    _was_read: bool = False
    is_understood: bool = False
    """Whether every job file that was there at the last look is known, whatever became of it since."""

    def scan(self, now: float, wall: float) -> Iterator[JobFound | JobGone]:
        """Returns what changed. ``now`` is of a monotonic clock; ``wall`` is in seconds since the epoch, as for files.

        A folder that cannot be read ends no job.
        """
        present = self._list()
        self.is_understood = False
        if present is None:
            return
        for path in [path for path in self._known if path not in present]:
            known = self._known[path]
            if known.missing_since is None:
                known.missing_since = now
            if now - known.missing_since >= GONE_SECONDS:
                self._forget(path)
                gone = self._moved(known, present)
                if gone.job_id is not None:
                    yield JobGone(gone.job_id)
        for path, entry in sorted(present.items()):
            seen = self._known.get(path)
            if seen is not None:
                seen.missing_since = None
            if isinstance(entry, OSError):
                self._refused(path, None, f"it cannot be read: {entry.strerror}")
            elif seen is None or seen.stamp != entry.stamp:
                yield from self._changed(path, entry.stamp, young=0 <= wall - entry.modified < UNFINISHED_SECONDS)
        self.is_understood = all(path in self._known and not self._known[path].waits for path in present)

    @property
    def unsettled(self) -> bool:
        """Whether a look is due soon even if nothing happens."""
        return any(known.missing_since is not None for known in self._known.values())

    def _moved(self, known: _Known, present: dict[Path, _Entry | OSError]) -> _Known:
        """What is gone with a file: if it only has another name now its job goes on, and what had the name is gone."""
        for other, entry in present.items():
            if isinstance(entry, OSError) or entry.stamp != known.stamp:
                continue
            before = self._known.get(other, _Known(None))
            if before.waits:
                self._known[other] = known
                known.missing_since = None
                self.notices.clear(str(other))
                return before
        return known

    def _forget(self, path: Path) -> None:
        del self._known[path]
        self.notices.clear(str(path))
        self._look_again()

    def _look_again(self) -> None:
        """What was refused because of a file that is away, or names another job now, may be right."""
        for known in self._known.values():
            if known.waits:
                known.stamp = None

    def _list(self) -> dict[Path, _Entry | OSError] | None:
        """What is in the folder, and what is there but cannot be looked at; None: not even the folder can."""
        listed: dict[Path, _Entry | OSError] = {}
        odd: dict[Path, str] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not entry.name.endswith(SUFFIXES):
                        continue
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        if entry.is_symlink():
                            odd[Path(entry.path)] = "it is a link to a file that is not there"
                        continue
                    except OSError as error:
                        # Such as a link that leads to itself, or to where the agent may not look.
                        listed[Path(entry.path)] = error
                        continue
                    # To open a pipe would wait for its writer for ever.
                    if not stat.S_ISREG(status.st_mode):
                        odd[Path(entry.path)] = f"it is {_kind(status.st_mode)}, and no file"
                        continue
                    stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
                    listed[Path(entry.path)] = _Entry(stamp, status.st_mtime)
        except OSError as error:
            reason = f"the folder of job files {self.path} cannot be read: {error.strerror}"
            self.notices.say(str(self.path), reason + ("; its jobs are kept as they are" if self._was_read else ""))
            return None
        self._was_read = True
        self._say_odd(odd)
        self.notices.clear(str(self.path), f"the folder of job files {self.path} can be read")
        return listed

    def _say_odd(self, odd: dict[Path, str]) -> None:
        """Say what has the name of a job file and is none. It is no job's, so that it keeps nobody waiting."""
        for path in self._odd - odd.keys():
            self.notices.clear(f"kind of {path}")
        self._odd = set(odd)
        for path, reason in odd.items():
            self.notices.say(f"kind of {path}", f"{path}: {reason}; it is passed over")

    def _changed(self, path: Path, stamp: _Stamp, *, young: bool) -> Iterator[JobFound | JobGone]:
        known = self._known.get(path)
        try:
            job = read_job_file(path, self._text(path), self.progress_dir)
            self._check_unique(path, job.id)
        except (JobFileError, OSError) as error:
            # What was understood before goes on until the file is whole again.
            if isinstance(error, OSError):
                # Not by a change of its text will it be readable.
                self._refused(path, None, f"it cannot be read: {error.strerror}")
            elif not young:
                self._refused(path, stamp, str(error), error.line, is_twin=isinstance(error, _TwinError))
            return
        if known is not None and known.job_id not in (None, job.id):
            yield JobGone(str(known.job_id))
            self._look_again()
        self._known[path] = _Known(stamp, job.id)
        self.notices.clear(str(path), f"{path}: understood now")
        yield JobFound(job)

    def _refused(
        self, path: Path, stamp: _Stamp | None, reason: str, line: int | None = None, *, is_twin: bool = False
    ) -> None:
        known = self._known.setdefault(path, _Known(stamp))
        known.stamp, known.is_twin = stamp, is_twin
        place = f"{path}:{line}" if line is not None else f"{path}"
        self.notices.say(str(path), f"{place}: {reason}")

    def _check_unique(self, path: Path, job_id: str) -> None:
        for other, known in self._known.items():
            if other != path and known.job_id == job_id:
                raise _TwinError(f"id: {job_id} is the job of {other} already; each job has one file")

    @staticmethod
    def _text(path: Path) -> str:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        try:
            return decode(data, most_bytes=MAX_FILE_BYTES)
        except PlainTextError as error:
            raise JobFileError(str(error), error.line) from error


def _kind(mode: int) -> str:
    """Returns what something in a folder is that is no regular file, for people."""
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a named pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"

"""The folder of job files: which appeared, changed or went away since it was last looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from host_reporter.job_file import MAX_FILE_BYTES, SUFFIXES, JobFile, JobFileError, read_job_file
from host_reporter.notices import Notices

UNFINISHED_SECONDS = 0.5
"""A file that is younger may still be being written: what is wrong with it is not yet told."""

GONE_SECONDS = 0.1
"""A file that is away for less was being replaced by its editor."""

_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Found:
    """A job file appeared or changed."""

    job: JobFile


@dataclass(frozen=True)
class Gone:
    """The job of a file that went away, or that now names another."""

    job_id: str


@dataclass
class _Known:
    stamp: _Stamp | None
    job_id: str | None = None
    missing_since: float | None = None


@dataclass
class JobsDirectory:
    """Looks at a folder. ``scan`` never raises: a bad file is said once, and the others go on."""

    path: Path
    progress_dir: Path
    notices: Notices
    _known: dict[Path, _Known] = field(default_factory=dict)
    _was_read: bool = False

    def scan(self, now: float) -> Iterator[Found | Gone]:
        """What changed. ``now``: seconds since the epoch. A folder that cannot be read ends no job."""
        present = self._list()
        if present is None:
            return
        for path in [path for path in self._known if path not in present]:
            known = self._known[path]
            if known.missing_since is None:
                known.missing_since = now
            if now - known.missing_since >= GONE_SECONDS and not self._moved(path, known, present):
                self._forget(path)
                if known.job_id is not None:
                    yield Gone(known.job_id)
        for path, (stamp, modified) in sorted(present.items()):
            seen = self._known.get(path)
            if seen is not None:
                seen.missing_since = None
            if seen is None or seen.stamp != stamp:
                yield from self._changed(path, stamp, young=0 <= now - modified < UNFINISHED_SECONDS)

    @property
    def unsettled(self) -> bool:
        """Whether a look is due soon even if nothing happens."""
        return any(known.missing_since is not None for known in self._known.values())

    def _moved(self, path: Path, known: _Known, present: dict[Path, tuple[_Stamp, float]]) -> bool:
        """Whether the file only has another name now: its job goes on."""
        for other, (stamp, _modified) in present.items():
            if stamp == known.stamp and (other not in self._known or self._known[other].job_id is None):
                self._forget(path)
                self._known[other] = known
                known.missing_since = None
                return True
        return False

    def _forget(self, path: Path) -> None:
        del self._known[path]
        self.notices.clear(str(path))
        # What was refused because of this file may be right now.
        for known in self._known.values():
            if known.job_id is None:
                known.stamp = None

    def _list(self) -> dict[Path, tuple[_Stamp, float]] | None:
        found: dict[Path, tuple[_Stamp, float]] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or not entry.name.endswith(SUFFIXES):
                        continue
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    # To open a pipe would wait for its writer for ever.
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
                    found[Path(entry.path)] = (stamp, status.st_mtime)
        except OSError as error:
            reason = f"the folder of job files {self.path} cannot be read: {error.strerror}"
            self.notices.say(str(self.path), reason + ("; its jobs are kept as they are" if self._was_read else ""))
            return None
        self._was_read = True
        self.notices.clear(str(self.path), f"the folder of job files {self.path} can be read")
        return found

    def _changed(self, path: Path, stamp: _Stamp, *, young: bool) -> Iterator[Found | Gone]:
        known = self._known.get(path)
        try:
            job = read_job_file(path, self._text(path), self.progress_dir)
            self._check_unique(path, job.id)
        except (JobFileError, OSError) as error:
            # What was understood before goes on until the file is whole again.
            if not young:
                self._known.setdefault(path, _Known(stamp)).stamp = stamp
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self.notices.say(str(path), f"{path}: {reason}")
            return
        if known is not None and known.job_id not in (None, job.id):
            yield Gone(str(known.job_id))
        self._known[path] = _Known(stamp, job.id)
        self.notices.clear(str(path), f"{path}: understood now")
        yield Found(job)

    def _check_unique(self, path: Path, job_id: str) -> None:
        for other, known in self._known.items():
            if other != path and known.job_id == job_id:
                raise JobFileError(f"id: {job_id} is the job of {other} already; each job has one file")

    @staticmethod
    def _text(path: Path) -> str:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise JobFileError(f"the file is larger than {MAX_FILE_BYTES} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise JobFileError(f"it is no UTF-8 text: byte {error.start}") from error

"""The trials of tuners' studies. Each is a job that begins with its progress file, and ends when that shows its end.

A study's job file is that of all its trials. A trial's file is ID.SUFFIX.jsonl in the study's folder. Whoever may write
there may begin trials of that study, with the spec of the study's job file, and no other jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from host_reporter.jobs.job import JobFound, JobGone
from host_reporter.jobs.job_file import JobFile
from host_reporter.jobs.studies.study import Study
from host_reporter.jobs.studies.trial_folder import MAX_FILES, TrialFolder
from host_reporter.notices import Notices

LOOK_SECONDS = 0.25
"""Look at the folders this often."""


class Trials:
    """Looks through the folders of studies. ``scan`` never raises."""

    def __init__(self, notices: Notices, *, max_files: int = MAX_FILES) -> None:
        self._max_files = max_files
        self._notices = notices
        self._studies: dict[str, Study] = {}
        self._folders: dict[Path, TrialFolder] = {}
        self._looked_at = float("-inf")

    def add(self, file: JobFile) -> Iterator[JobFound | JobGone]:
        """Yields the changes after a study's file has come or changed."""
        known = self._studies.get(file.id)
        if known is not None and known.file.followed != file.followed:
            yield from self.remove(file.id)
            known = None
        self._looked_at = float("-inf")
        if known is None:
            self._studies[file.id] = Study(file)
            return
        known.file = file
        for job in known.followed:
            yield JobFound(known.trial(job))

    def remove(self, study: str) -> Iterator[JobGone]:
        """Yields the ends of a study's trials after its file is gone."""
        known = self._studies.pop(study, None)
        if known is not None:
            self._notices.clear(_key(study))
            for job in known.followed:
                yield JobGone(job)

    @property
    def jobs(self) -> Collection[str]:
        """The ids of all trials that are known."""
        return [job for study in self._studies.values() for job in study.known]

    @property
    def waiting(self) -> Collection[str]:
        """The ids of trials that will be followed when there is room, or at the next look."""
        return [job for study in self._studies.values() for job in study.waiting]

    @property
    def folders(self) -> Collection[Path]:
        """The folders of the trials' files."""
        return {study.file.followed for study in self._studies.values()}

    def next_look(self) -> float:
        """Returns when a look is due, by the clock of ``scan``."""
        return self._looked_at + LOOK_SECONDS if self._studies else float("inf")

    def scan(
        self, now: float, wall: float, resting: Collection[str], others: Collection[str]
    ) -> Iterator[JobFound | JobGone]:
        """Yields the trials that began and those that are over.

        ``now`` is of a monotonic clock, ``wall`` in seconds since the epoch. ``resting`` are the trials whose progress
        shows an end, and ``others`` the jobs with files of their own.
        """
        self._looked_at = now
        own_files = frozenset(others)
        present = {folder: self._look(folder, wall) for folder in self.folders}
        for name, study in list(self._studies.items()):
            # A folder that cannot be read ends no trial.
            if (names := present[study.file.followed]) is not None:
                yield from study.look(names.get(name, frozenset()), wall, resting, own_files)
                self._say_room(name, study)
        for folder in self._folders.keys() - present.keys():
            del self._folders[folder]

    def _look(self, path: Path, wall: float) -> Mapping[str, frozenset[str]] | None:
        """Returns a folder's trials by study; None where the folder cannot be read."""
        folder = self._folders.setdefault(path, TrialFolder(path, max_files=self._max_files))
        try:
            trials = folder.look(wall)
        except OSError as error:
            self._notices.say(f"trials in {path}", f"trials' progress in {path} cannot be seen: {error.strerror}")
            return None
        if folder.is_full:
            self._notices.say(
                f"trials in {path}",
                f"{path} has more than {self._max_files:,} files: trials among the rest are not reported; remove the "
                "files of old ones",
            )
        else:
            self._notices.clear(f"trials in {path}")
        return trials

    def _say_room(self, name: str, study: Study) -> None:
        assert study.file.trials is not None
        if not study.is_full:
            self._notices.clear(_key(name))
            return
        self._notices.say(
            _key(name),
            f"study {name} has more than {study.file.trials.most} trials at a time: the rest is not reported; "
            f"see trials.most in {study.file.path}",
        )


def _key(study: str) -> str:
    return f"trials {study}"

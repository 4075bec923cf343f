"""The names of trials' progress files in a folder, which is listed again only when something in it came or went.

A folder keeps the files of all trials that ever were, thousands of a long study, and is looked at several times a
second.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from pathlib import Path

from host_reporter.readers.folder_stamp import FolderStamp
from host_reporter.training.launch import MAX_NAME

MAX_FILES = 10_000
"""Look at no more files of a folder than this."""

SUFFIX = ".jsonl"

_TRIAL = re.compile(r"[A-Za-z0-9_-]+")


class TrialFolder:
    """One folder. ``is_full``: there are more files than are looked at."""

    def __init__(self, path: Path, *, max_files: int = MAX_FILES) -> None:
        self._max_files = max_files
        self.path = path
        self.is_full = False
        self._stamp = FolderStamp()
        self._studies: dict[str, frozenset[str]] = {}

    def look(self, wall: float) -> Mapping[str, frozenset[str]]:
        """The trials with a plain file there, by study: the same sets as before where nothing has changed.

        ``wall``: seconds since the epoch. Empty where there is no such folder. Raises OSError.
        """
        try:
            if self._stamp.is_news(self.path, wall):
                self._studies = self._list()
        except FileNotFoundError:
            self._stamp.forget()
            self._studies = {}
        except OSError:
            self._stamp.forget()
            raise
        return self._studies

    def _list(self) -> dict[str, frozenset[str]]:
        trials: dict[str, set[str]] = {}
        with os.scandir(self.path) as entries:
            for entry in itertools.islice(entries, self._max_files):
                job = entry.name.removesuffix(SUFFIX)
                study, _, suffix = job.rpartition(".")
                if job == entry.name or not study or len(job) > MAX_NAME or not _TRIAL.fullmatch(suffix):
                    continue
                if entry.is_file(follow_symlinks=False):
                    trials.setdefault(study, set()).add(job)
            self.is_full = next(entries, None) is not None
        # A study that is as it was keeps its object, so that its trials are not gone through again.
        new = {study: frozenset(jobs) for study, jobs in trials.items()}
        return {study: old if (old := self._studies.get(study)) == jobs else jobs for study, jobs in new.items()}

"""Metrics that a job whose output is in no file writes below its working folder, where nothing else can be meant.

Lightning's CSV tables, the checkpoints of Hugging Face's Trainer, and TensorBoard's event files. They count where one
folder alone of the job's user was written since the process began.
"""

from __future__ import annotations

import glob
import itertools
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from host_reporter.jobs.found.descriptors import as_seen_by
from host_reporter.procfs import PROC
from host_reporter.readers.location import Location

MAX_ENTRIES = 10_000
"""Look at no more entries of folders in one search than this."""

MAX_FOLDER_ENTRIES = 1_000
"""A folder with more entries is one of data; what is in it does not count."""

MAX_DEPTH = 3
"""Look at folders so far below the working folder: ``lightning_logs/version_0`` is two below it."""

_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "mlruns"})
"""Folders that have many entries and none of these files, or those of other readers."""

_TABLE, _EVENTS, _STATE = "metrics.csv", "tfevents", "trainer_state.json"
_KINDS = (_TABLE, _EVENTS, _STATE)
"""The first kind that is there counts: a checkpoint is written more seldom than the others."""

_PARTS = frozenset({"train", "training", "val", "valid", "validation", "eval", "test"})
"""Folders of event files that belong to the run whose folder is above."""


def working_folder(pid: int) -> str | None:
    """Returns the working folder of a process, as it sees it; None: it is gone, or may not be looked at."""
    try:
        return os.readlink(f"{PROC}/{pid}/cwd")  # noqa: PTH115 - pathlib costs as much again
    except OSError:
        return None


def metrics_below(pid: int, folder: str, user: int, since: float) -> Location | None:
    """Returns the only metrics below a process's working folder that are its user's, and of folders since a moment.

    ``since``: when the process began, in seconds since the epoch. None: there are none, or several, or there is too
    much to look at.
    """
    root = as_seen_by(pid, folder)
    if folder == "/" or not _is_of(user, str(root)):
        return None
    search = _Search(user, since)
    search.look(str(root), 0)
    kind = next((kind for kind in _KINDS if search.found.get(kind)), None)
    if kind is None or search.is_cut or any(len(folders) > 1 for folders in search.found.values()):
        return None
    below = next(iter(search.found[kind]))
    return _location(kind, Path(below), Path(folder) / Path(below).relative_to(root), user)


def _location(kind: str, folder: Path, shown: Path, user: int) -> Location:
    """Returns the metrics in a folder, which messages call ``shown``."""
    if kind == _EVENTS:
        return Location(folder, str(shown), "tensorboard", follow_links=False, owner=user)
    if kind == _TABLE:
        return Location(folder / _TABLE, str(shown / _TABLE), "csv", follow_links=False, owner=user)
    checkpoints = f"checkpoint-*/{_STATE}"
    path = Path(glob.escape(str(folder))) / checkpoints
    return Location(path, str(shown / checkpoints), "trainer-state", follow_links=False, owner=user)


@dataclass
class _Search:
    """A bounded search. ``found`` are the folders by the kind of their metrics; ``is_cut``: there is too much."""

    user: int
    since: float
    found: dict[str, set[str]] = field(default_factory=dict)
    is_cut: bool = False
    _left: int = MAX_ENTRIES

    def look(self, folder: str, depth: int) -> None:
        """Look at the entries of a folder, and of those in it."""
        for entry in self._entries(folder):
            kind = _TABLE if entry.name == _TABLE else _EVENTS if _EVENTS in entry.name else None
            if kind is not None:
                if depth and self._is_own(folder, entry.name):
                    self._note(kind, folder)
            elif not entry.name.startswith(".") and entry.name not in _LEFT_OUT and entry.is_dir(follow_symlinks=False):
                self._look_into(entry, folder, depth)

    def _look_into(self, entry: os.DirEntry[str], folder: str, depth: int) -> None:
        if entry.name.startswith("checkpoint-"):
            if self._is_own(entry.path, _STATE):
                self._note(_STATE, folder)
        elif depth < MAX_DEPTH:
            self.look(entry.path, depth + 1)

    def _note(self, kind: str, folder: str) -> None:
        above, _, name = folder.rpartition("/")
        is_part = kind == _EVENTS and name in _PARTS
        self.found.setdefault(kind, set()).add(above if is_part else folder)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                entries = list(itertools.islice(found, min(MAX_FOLDER_ENTRIES, self._left) + 1))
        except OSError:
            return []
        self._left -= len(entries)
        self.is_cut |= self._left < 0
        return entries if len(entries) <= MAX_FOLDER_ENTRIES and not self.is_cut else []

    def _is_own(self, folder: str, name: str) -> bool:
        """Returns whether a file and its folder are the user's, and the folder was written since the process began."""
        try:
            above, file = os.lstat(folder), os.lstat(f"{folder}/{name}")
        except OSError:
            return False
        is_young = above.st_mtime >= self.since
        return stat.S_ISREG(file.st_mode) and above.st_uid == file.st_uid == self.user and is_young


def _is_of(user: int, folder: str) -> bool:
    try:
        return os.stat(folder).st_uid == user  # noqa: PTH116 - as above
    except OSError:
        return False

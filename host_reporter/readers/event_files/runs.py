"""TensorBoard's event files below a folder: those of the newest run, of its validation before its training.

Programs make folders of their own below the one that is named: Keras train/ and validation/, Lightning version_3/,
Hugging Face a folder with the date.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from host_reporter.formats import names
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.readers.chosen import Chosen
from host_reporter.readers.event_files.source import EventSource

MAX_DEPTH = 4
"""Look so many levels below the folder."""

MAX_FOLDERS = 2_000
"""Look at no more folders than this."""

LOOK_SECONDS = 5.0
"""Look for a newer run at most this often."""

PRESET = "tensorboard"
_MARK = "tfevents"
_TRAINING = frozenset({"train", "training"})


class EventFolders(Chosen[EventSource]):
    """Follows one folder of event files at a time. ``declared.metric`` is the tag, if one is declared.

    ``follow_links``: whether the folder may be a link. ``owner``: the number of the user to whom the files must belong.
    """

    def __init__(
        self, folder: Path, declared: Declared, *, follow_links: bool = True, owner: int | None = None
    ) -> None:
        super().__init__()
        self._folder, self._declared = folder, declared
        self._follow_links, self._owner = follow_links, owner
        self._counter = Counter(declared.wanted(), PRESET)
        self._earlier = (0, 0)

    @property
    def matched(self) -> int:
        """How many scalars were points of progress."""
        return self._earlier[0] + super().matched

    @property
    def unmatched(self) -> int:
        """How many scalars were others."""
        return self._earlier[1] + super().unmatched

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything; ``final``: no more will come."""
        if self._source is None:
            there = "there is no event file in it or below it yet (events.out.tfevents...)"
            is_there = os.path.isdir(self._folder)  # noqa: PTH112 - Path.is_dir raises where it may not look
            return f"{self._folder}: {there if is_there else 'not there yet'}"
        return self._source.problem(final=final)

    def move(self, folder: Path) -> None:
        """Follow the runs of another folder from now on."""
        self._folder, self._looked_at = folder, float("-inf")

    def _look(self, now: float) -> None:
        """Turn to the newest run, which may have begun since."""
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            # A link such as runs/latest may lead to another run later. A path through /proc/PID/root is of a container.
            chosen = newest_folder(self._folder.resolve() if self._follow_links else self._folder)
        except (OSError, RuntimeError):
            # It may not be looked at, or leads to itself.
            return
        if chosen is None or (self._source is not None and chosen == self._source.folder):
            return
        if self._source is not None:
            self._earlier = (self.matched, self.unmatched)
            self._source.close()
            self._counter.begin_file()
        self._source = EventSource(chosen, self._declared.metric, counter=self._counter, owner=self._owner)


def newest_folder(root: Path) -> Path | None:
    """Returns the folder of event files that is to be followed; None where there is none.

    It is the one whose files changed last, and of those of one run the one of the validation.
    """
    found = dict(_folders(root))
    if not found:
        return None
    latest = max(found, key=lambda folder: (found[folder], str(folder)))
    if latest.name.lower() not in _TRAINING:
        return latest
    beside = [folder for folder in found if folder.parent == latest.parent and names.is_validation(folder.name)]
    return max(beside, key=lambda folder: found[folder], default=latest)


def _folders(root: Path) -> Iterator[tuple[Path, float]]:
    """Yields the folders with event files, at and below the root, with the time at which a file of each was changed."""
    waiting = [(root, 0)]
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.pop()
        changed: float | None = None
        try:
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, MAX_FOLDERS):
                    if _MARK in entry.name:
                        changed = max(changed or 0.0, entry.stat(follow_symlinks=False).st_mtime)
                    elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), depth + 1))
        except OSError:
            continue
        if changed is not None:
            yield folder, changed

"""A job's progress from TensorBoard's event files: a folder that a SummaryWriter writes to, and the tag of the metric.

A training that is started again, or a writer that has enough of a file, begins another file in the folder; several
processes may write at once. So all files are read, the oldest name first, and the latest few of them are followed.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

from host_reporter.formats import names
from host_reporter.formats.counts.counting import Counter
from host_reporter.formats.local import with_names
from host_reporter.formats.reading import Reading
from host_reporter.readers.event_files.tensorboard import Records, Scalar, scalars
from host_reporter.readers.folder_stamp import FolderStamp
from host_reporter.readers.log_source import TURN_SECONDS
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.parse import MAX_ITERATION, MAX_METRIC, MAX_TIME, Event, Point
from host_reporter.readers.tail import Tail

MAX_OPEN = 8
"""Follow the latest so many files; an older one is closed when all of it was read."""

MAX_FILES = 10_000
"""Look at no more entries of a folder than this."""

LIST_SECONDS = 0.5
"""Look for new files at most this often."""

MAX_TAGS_TOLD = 8
MAX_SCALARS = 1_000
"""Count no more scalars of one step."""

MAX_TAG = 200
_MARK = "tfevents"


class _File:
    def __init__(self, path: Path, owner: int | None) -> None:
        # Who writes into the folder may be another user than the operator who named it.
        self.tail = Tail(path, follow_links=False, owner=owner)
        self.records = Records()

    def poll(self) -> Iterator[bytes] | None:
        """The records that are new, if there are new bytes."""
        data, restarted = self.tail.poll()
        if restarted:
            self.records = Records()
        return self.records.feed(data) if data else None


class EventSource:
    """Points out of the scalars with ``tag``; without a tag each new step of any scalar is a point without a metric.

    With a ``counter`` the scalars of one step are its readings: it chooses the metric, describes it, and sees new runs.
    """

    is_costly = False

    def __init__(
        self, folder: Path, tag: str | None, *, counter: Counter | None = None, owner: int | None = None
    ) -> None:
        """``owner``: the number of the user to whom the files must belong."""
        self.folder = folder
        self._owner = owner
        self.matched = 0
        self.unmatched = 0
        self._tag = tag
        self._files: dict[str, _File] = {}
        self._done: set[str] = set()
        self._reading: tuple[_File, Iterator[bytes]] | None = None
        self._listed_at = float("-inf")
        self._stamp = FolderStamp()
        self._error: str | None = f"{folder}: not there yet"
        self._damaged = False
        self._other_tags: dict[str, None] = {}
        self._last_step: int | None = None
        self._counter = counter
        self._step: list[Scalar] = []

    @property
    def samples(self) -> tuple[str, ...]:
        """Event files have no lines."""
        return ()

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read."""
        return self.matched + self.unmatched > 0

    def poll(self, _limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the points since the last call, and whether there may be more to read at once."""
        if self._reading is None:
            self._look(time.monotonic())
            self._reading = self._next()
        if self._reading is None:
            return self.rest(_limit), False
        return self._parse_some(*self._reading), True

    def rest(self, _limit: MatchLimit) -> list[Event]:
        """Returns the events of the last step, whose other scalars may be to come."""
        return self._count_step()

    def aim(self) -> None:
        """Note how much there is to read now; ``is_there`` when that was read."""
        self._listed_at = float("-inf")
        self._look(time.monotonic())
        for file in self._files.values():
            file.tail.aim()

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read."""
        return self._reading is None and all(file.tail.is_there or file.tail.error for file in self._files.values())

    @property
    def modified(self) -> float | None:
        """When the latest file was last written, in seconds since the epoch; None where that is not known."""
        times = [file.tail.modified for file in self._files.values()]
        return max((modified for modified in times if modified is not None), default=None)

    def seems_over(self, _limit: MatchLimit) -> bool:
        """Never: event files tell no end."""
        return False

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything; ``final``: no more will come."""
        if self._error is not None:
            return self._error
        if not self._files and not self._done:
            return f"{self.folder}: there is no event file in it yet (events.out.tfevents...)"
        if errors := [file.tail.error for file in self._files.values() if file.tail.error]:
            return errors[0]
        if self._damaged:
            return f"{self.folder}: a part of an event file is damaged and was passed over"
        if self.matched == 0 and self.unmatched >= (1 if final else 100):
            return with_names(f"{self.folder}: none of its scalars is called {self._tag}", self._other_tags)
        problem = self._counter.problem() if self._counter is not None else None
        return f"{self.folder}: {problem}" if problem is not None else None

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.tail.close()
        self._files.clear()
        self._reading = None

    def _look(self, now: float) -> None:
        """Which files there are; seldom, for a busy file wakes us often."""
        if now - self._listed_at < LIST_SECONDS:
            return
        self._listed_at = now
        try:
            if not self._stamp.is_news(self.folder, time.time()):
                return
            with os.scandir(self.folder) as entries:
                names = {e.name for e in itertools.islice(entries, MAX_FILES) if _MARK in e.name}
        except FileNotFoundError:
            self._stamp.forget()
            self._error = f"{self.folder}: not there yet"
            names = set()
        except OSError as error:
            self._stamp.forget()
            self._error = f"{self.folder}: {error.strerror}"
            return
        else:
            self._error = None
        self._done &= names
        for name in sorted(names - self._done - self._files.keys()):
            self._files[name] = _File(self.folder / name, self._owner)
        for name in self._files.keys() - names:
            self._files.pop(name).tail.close()
        self._files = dict(sorted(self._files.items()))

    def _next(self) -> tuple[_File, Iterator[bytes]] | None:
        """The first file that has something new."""
        for name, file in list(self._files.items()):
            records = file.poll()
            if records is not None:
                return file, records
            if len(self._files) > MAX_OPEN and file.tail.error is None:
                file.tail.close()
                del self._files[name]
                self._done.add(name)
        return None

    def _parse_some(self, file: _File, records: Iterator[bytes]) -> list[Event]:
        events: list[Event] = []
        began = time.thread_time()
        for record in records:
            try:
                values = scalars(record)
            except ValueError:
                # Its checksum is right, but it is no event.
                self._damaged = True
                continue
            for scalar in values:
                events += self._events(scalar)
            if time.thread_time() - began > TURN_SECONDS:
                return events
        self._reading = None
        self._damaged |= file.records.damaged > 0
        return events

    def _events(self, scalar: Scalar) -> list[Event]:
        """Returns the events of a scalar; with a counter, those of the step before, once another one begins."""
        if self._counter is None:
            point = self._point(scalar)
            return [point] if point is not None else []
        events = self._count_step() if self._step and self._step[0].step != scalar.step else []
        if 0 <= scalar.step <= MAX_ITERATION and len(self._step) < MAX_SCALARS:
            self._step.append(scalar)
            if (
                self._tag is not None
                and not names.same(scalar.tag, self._tag)
                and len(self._other_tags) < MAX_TAGS_TOLD
            ):
                self._other_tags[scalar.tag[:100]] = None
        return events

    def _count_step(self) -> list[Event]:
        step, self._step = self._step, []
        if self._counter is None or not step:
            return []
        metrics = {scalar.tag[:MAX_TAG]: scalar.value for scalar in step if self._tag is None or self._is_tag(scalar)}
        if not metrics:
            self.unmatched += len(step)
            return []
        self.matched += 1
        time = step[0].time
        when = time if 0 < time <= MAX_TIME else None
        return self._counter.count(Reading(iteration=float(step[0].step), metrics=metrics, time=when))

    def _is_tag(self, scalar: Scalar) -> bool:
        return self._tag is not None and names.same(scalar.tag, self._tag)

    def _point(self, scalar: Scalar) -> Point | None:
        if self._tag is not None and scalar.tag != self._tag:
            self.unmatched += 1
            if len(self._other_tags) < MAX_TAGS_TOLD:
                self._other_tags[scalar.tag[:100]] = None
            return None
        if not 0 <= scalar.step <= MAX_ITERATION or (self._tag is None and scalar.step == self._last_step):
            return None
        self.matched += 1
        self._last_step = scalar.step
        metric = scalar.value if self._tag is not None and abs(scalar.value) <= MAX_METRIC else None
        time = scalar.time if 0 < scalar.time <= MAX_TIME else None
        diverged = self._tag is not None and not math.isfinite(scalar.value)
        return Point(float(scalar.step), metric, time, diverged)

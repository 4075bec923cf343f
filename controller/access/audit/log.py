"""The audit of a running controller: takes records at once, and writes them behind the requests.

No request waits for the disk. A record is in the file, and the disk asked to keep it, a few milliseconds after the
answer; a sudden end of the process can cost the last of them. If the file cannot be written, records wait in memory,
WAITING at most, and the file is tried again. Further records are then lost and counted, and the next record that is
kept says how many.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import eventlet
import eventlet.event
import eventlet.semaphore
import eventlet.tpool

from controller.access.audit.chain import Chain, Line
from controller.access.audit.files import AuditFiles, read_chain, read_since
from controller.access.audit.record import Link

LOG = logging.getLogger("trainyard.audit")
TAIL = 1000
"""Keep this many of the newest records in memory."""
WAITING = 4096
"""Keep at most this many records for a file that cannot be written now."""
BATCH = 512
RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0
"""Pause RETRY_SECONDS after the first failed write, then twice as long each time, MAX_RETRY_SECONDS at most."""
_NO_LIMIT = 2**63


class Head(NamedTuple):
    """The newest record: its number and its hash."""

    number: int
    hash: str


class AuditLog:
    """All records. ``path`` of None keeps the newest TAIL in memory alone. ``clock``: seconds since the Unix epoch.

    Raises AuditError where the files at ``path`` cannot be gone on with.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int,
        keep: int | None,
        clock: Callable[[], float],
        retry_seconds: float = RETRY_SECONDS,
        waiting: int = WAITING,
    ) -> None:
        self._path = path
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._most_waiting = waiting
        # The first record of a chain without a file needs none that begins a file.
        self._chain = Chain(_NO_LIMIT, None, starts=[1]) if path is None else read_chain(path, max_bytes, keep)
        self._files = AuditFiles(path) if path is not None else None
        self._tail: deque[Link] = deque(maxlen=TAIL)
        self._waiting: deque[Line] = deque()
        self._listeners: list[Callable[[Link], None]] = []
        self._unsaid = 0
        self.lost = 0
        """How many records were lost since the start."""
        self.failure: str | None = None
        """Why the file cannot be written; None: it can."""
        self._wake = eventlet.event.Event()
        self._writing = eventlet.semaphore.Semaphore()
        """Held while another thread writes; the green thread must not be ended then."""
        self._thread: eventlet.greenthread.GreenThread | None = None

    @classmethod
    def in_memory(cls, clock: Callable[[], float] = time.time) -> AuditLog:
        """Returns the audit of a controller that has no file for it."""
        return cls(None, max_bytes=_NO_LIMIT, keep=None, clock=clock)

    def subscribe(self, listener: Callable[[Link], None]) -> None:
        """Call ``listener`` with each record that is added. It must neither wait nor raise anything."""
        self._listeners.append(listener)

    def add(self, content: Mapping[str, Any]) -> None:
        """Add a record, whose time is now. It does not wait, and raises nothing that depends on the disk."""
        if len(self._waiting) >= self._most_waiting:
            self.lost += 1
            self._unsaid += 1
            return
        lost, self._unsaid = self._unsaid or None, 0
        for line in self._chain.add({"time": self._clock(), **content, "lost": lost}):
            self._tail.append(line.link)
            if self._files is not None:
                self._waiting.append(line)
            for listener in self._listeners:
                listener(line.link)
        if self._waiting and not self._wake.ready():
            self._wake.send()

    @property
    def head(self) -> Head:
        """The newest record. Without any, its number is 0."""
        return Head(self._chain.number, self._chain.hash)

    @property
    def problem(self) -> str | None:
        """What an operator should know, in a sentence; None: nothing."""
        if self.failure is not None:
            lost = f", {self.lost} were lost" if self.lost else ""
            return f"the audit file cannot be written: {self.failure}; {len(self._waiting)} records wait{lost}"
        return None

    def newest(self, limit: int) -> list[Link]:
        """Returns the newest records, at most ``limit``, the oldest of them first."""
        return list(self._tail)[-limit:]

    def since(self, number: int, limit: int) -> list[Link]:
        """Returns the records after ``number``, at most ``limit``, the oldest first.

        Those that are not in memory any more are read from the files, in another thread. Records whose files are gone
        are left out. Raises OSError where a file cannot be read.
        """
        kept = [each for each in self._tail if each.number > number]
        oldest = self._tail[0].number if self._tail else self._chain.number + 1
        if self._path is not None and number + 1 < oldest:
            earlier: list[Link] = eventlet.tpool.execute(read_since, self._path, number, limit)
            kept = [each for each in earlier if each.number < oldest] + kept
        return kept[:limit]

    def start(self) -> None:
        """Start to write."""
        if self._files is not None:
            self._thread = eventlet.spawn(self._run)

    def stop(self) -> bool:
        """Write what waits, once, and close the file; returns whether nothing is left unwritten."""
        if self._files is None:
            return True
        with self._writing:
            if self._thread is not None:
                self._thread.kill()
                self._thread = None
        while self._waiting and self._write():
            pass
        eventlet.tpool.execute(self._files.close)
        if self._waiting:
            LOG.error("%d records of the audit could not be written at the end, and are lost", len(self._waiting))
        return not self._waiting

    def _run(self) -> None:
        pause = self._retry_seconds
        while True:
            if self.failure is not None:
                eventlet.sleep(pause)
                pause = min(2 * pause, MAX_RETRY_SECONDS)
            else:
                pause = self._retry_seconds
                self._wake.wait()
            self._wake = eventlet.event.Event()
            while self._waiting and self._write():
                pass

    def _write(self) -> bool:
        """Write a batch; returns whether that worked."""
        assert self._files is not None
        with self._writing:
            batch = list(islice(self._waiting, BATCH))
            try:
                done, failure = eventlet.tpool.execute(self._files.write, batch)
            except Exception as error:  # whatever the error, the controller goes on without the file
                done, failure = 0, f"{type(error).__name__}: {error}"
            for _ in range(done):
                self._waiting.popleft()
        if failure != self.failure:
            if failure is None:
                LOG.info("the audit file is written again")
            else:
                LOG.error("the audit file cannot be written: %s", failure)
        self.failure = failure
        return failure is None

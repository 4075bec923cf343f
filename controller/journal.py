"""The green thread that commits the store's notes, off the path of requests and plans."""

from __future__ import annotations

import logging
import time

import eventlet
import eventlet.event
import eventlet.tpool

from controller.store import Batch, Store

LOG = logging.getLogger("trainyard.journal")
GATHER_SECONDS = 0.02
"""Notes that come within this time share a commit."""
RETRY_SECONDS = 1.0
STOP_SECONDS = 5.0
WAIT_SECONDS = 0.5
"""How long an answer waits for its commit at most; then the change is in memory and still on its way."""


class Journal:
    """Commits what ``store`` has noted, in another thread; retries a degraded journal by itself."""

    def __init__(self, store: Store, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._wake = eventlet.event.Event()
        self._done = eventlet.event.Event()
        self._is_busy = False
        self._thread: eventlet.greenthread.GreenThread | None = None
        self._said: set[str] = set()
        if store.failure is not None:
            self._say(store.failure)
        store.on_note(self._on_note)

    def start(self) -> None:
        """Start the green thread."""
        self._thread = eventlet.spawn(self._run)

    def stop(self) -> None:
        """Commit what is left, and close the file."""
        deadline = time.monotonic() + STOP_SECONDS
        # A write that is under way in the other thread must be through before the file is closed.
        while self._thread is not None and self._is_busy and time.monotonic() < deadline:
            eventlet.sleep(0.002)
        if self._thread is not None:
            self._thread.kill()
            self._thread = None
        if (self._store.pending or self._store.failure is not None) and not self._is_busy:
            # Also where the journal is degraded: this is the last chance.
            self._settle(self._store.write(self._store.take()))
        self._store.close()

    def commit(self) -> None:
        """Wait until what was just noted is committed; not at all while the journal is degraded.

        To be called in the same breath as the change, before any other green thread runs.
        """
        if not self._store.pending or self._store.failure is not None or self._thread is None:
            return
        with eventlet.Timeout(WAIT_SECONDS, False):
            self._done.wait()

    def _on_note(self) -> None:
        if not self._wake.ready():
            self._wake.send()

    def _run(self) -> None:
        while True:
            if self._store.failure is not None:
                eventlet.sleep(self._retry_seconds)
            else:
                self._wake.wait()
                eventlet.sleep(GATHER_SECONDS)
            self._wake = eventlet.event.Event()
            self._commit_once()

    def _commit_once(self) -> None:
        batch: Batch = self._store.take()
        # Whoever waits from here on has changes that are not in this batch.
        done, self._done = self._done, eventlet.event.Event()
        self._is_busy = True
        try:
            failure = eventlet.tpool.execute(self._store.write, batch)
        except Exception as error:  # whatever it is, the loop must go on without a journal
            failure = f"{self._store.path}: {type(error).__name__}: {error}"
        self._is_busy = False
        self._settle(failure)
        done.send()
        if self._store.pending:
            self._on_note()

    def _settle(self, failure: str | None) -> None:
        if self._store.settle(failure):
            self._say(failure)

    def _say(self, failure: str | None) -> None:
        if failure is None:
            self._said.clear()
            LOG.info("the journal is written again; nothing is missing in it")
        elif failure not in self._said:  # each cause once, not with every attempt
            self._said.add(failure)
            LOG.error("the journal cannot be written, the state is in memory only: %s", failure)

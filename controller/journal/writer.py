"""The green thread that commits the store's notes, off the path of requests and plans."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import eventlet
import eventlet.event
import eventlet.semaphore
import eventlet.tpool

from controller.journal.store import Store
from controller.refusals import Unavailable
from controller.steps import in_steps

LOG = logging.getLogger("trainyard.journal")
GATHER_SECONDS = 0.02
"""Commit together the notes that come within this time."""
RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0
"""Pause RETRY_SECONDS after the first failed write, then twice as long each time, MAX_RETRY_SECONDS at most."""
WAIT_SECONDS = 0.5
"""Hold an answer back for its commit this long at most. After that the change is in memory and not yet committed."""


class Journal:
    """Commits what ``store`` has noted, in another thread; retries a degraded journal by itself."""

    def __init__(
        self, store: Store, *, retry_seconds: float = RETRY_SECONDS, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._wait_seconds = wait_seconds
        self._wake = eventlet.event.Event()
        self._done = eventlet.event.Event()
        self._under_way: eventlet.event.Event | None = None
        """Sent when the batch in the other thread is committed; None: there is none."""
        self._committing = eventlet.semaphore.Semaphore()
        self._thread: eventlet.greenthread.GreenThread | None = None
        self._is_stopped = False
        self._said: set[str] = set()
        if store.failure is not None:
            self._say(store.failure)
        store.on_note(self._on_note)

    def start(self) -> None:
        """Start the green thread. It first commits what was noted before."""
        self._thread = eventlet.spawn(self._run)
        if self._store.pending:
            self._on_note()

    def commit(self) -> None:
        """Wait until what was just noted is committed; not at all while the journal is degraded.

        Call it right after the change, before any other green thread runs. Raises Unavailable after ``stop``: no
        later change reaches the journal.
        """
        if self._is_stopped:
            raise Unavailable("the controller is stopping; ask again when it has started anew")
        if self._store.failure is not None or self._thread is None:
            return
        # A client that repeats a request may have sent it before: that change may still be under way.
        batch = self._done if self._store.pending else self._under_way
        if batch is not None:
            with eventlet.Timeout(self._wait_seconds, False):
                batch.wait()

    def flush(self) -> bool:
        """Commit what is noted, however long it takes; returns whether nothing is missing in the journal then.

        A degraded journal gets another chance.
        """
        # In a green thread of its own: a timeout of the caller must not interrupt a write.
        eventlet.spawn(self._commit_all).wait()
        if self._store.failure is not None:
            LOG.error("the journal could not be written at the end: what is missing in it is lost")
        return self._store.failure is None

    def stop(self) -> bool:
        """Commit what is left, and close the file, however long it takes; returns whether nothing is missing in it."""
        self._is_stopped = True
        is_whole = self.flush()
        with self._committing:
            if self._thread is not None:
                self._thread.kill()
                self._thread = None
            eventlet.tpool.execute(self._store.close)
        return is_whole

    def _commit_all(self) -> None:
        with self._committing:
            # Where the first attempt fails, the second writes everything.
            for _ in range(2):
                if self._store.pending or self._store.failure is not None:
                    self._commit_once()

    def _on_note(self) -> None:
        if not self._wake.ready():
            self._wake.send()

    def _run(self) -> None:
        pause = self._retry_seconds
        while True:
            if self._store.failure is not None:
                eventlet.sleep(pause)
                pause = min(2 * pause, MAX_RETRY_SECONDS)
            else:
                pause = self._retry_seconds
                self._wake.wait()
                eventlet.sleep(GATHER_SECONDS)
            self._wake = eventlet.event.Event()
            with self._committing:
                self._commit_once()

    def _commit_once(self) -> None:
        if self._store.failure is not None:
            # Collecting the whole state takes long, and is useless as long as not even one page can be written.
            failure = self._in_other_thread(self._store.probe)
            if failure is not None:
                self._settle(failure)
                return
        batch = in_steps(self._store.dequeue_in_steps())
        # Changes from here on are not in this batch.
        done, self._done = self._done, eventlet.event.Event()
        self._under_way = done
        failure = self._in_other_thread(partial(self._store.write, batch))
        self._under_way = None
        self._settle(failure)
        done.send()
        if self._store.pending:
            self._on_note()

    def _in_other_thread(self, act: Callable[[], str | None]) -> str | None:
        try:
            failure: str | None = eventlet.tpool.execute(act)
        except Exception as error:  # whatever the error, the loop must go on without a journal
            return f"{self._store.path}: {type(error).__name__}: {error}"
        return failure

    def _settle(self, failure: str | None) -> None:
        if self._store.settle(failure):
            self._say(failure)

    def _say(self, failure: str | None) -> None:
        if failure is None:
            self._said.clear()
            LOG.info("the journal is written again; nothing is missing in it")
        elif failure not in self._said:  # log each reason once, not with every attempt
            self._said.add(failure)
            LOG.error("the journal cannot be written, the state is in memory only: %s", failure)

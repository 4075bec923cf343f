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
"""Notes that come within this time share a commit."""
RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 30.0
"""Between two attempts to write a degraded journal: at first, and at most. Each pause is twice as long as the last."""
WAIT_SECONDS = 0.5
"""How long an answer waits for its commit at most; then the change is in memory and still on its way."""


class Journal:
    """Commits what ``store`` has noted, in another thread; retries a degraded journal by itself."""

    def __init__(self, store: Store, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._wake = eventlet.event.Event()
        self._done = eventlet.event.Event()
        self._under_way: eventlet.event.Event | None = None
        """Sent when the batch is through that is in the other thread now; None: there is none."""
        self._committing = eventlet.semaphore.Semaphore()
        self._thread: eventlet.greenthread.GreenThread | None = None
        self._is_stopped = False
        self._said: set[str] = set()
        if store.failure is not None:
            self._say(store.failure)
        store.on_note(self._on_note)

    def start(self) -> None:
        """Start the green thread; what was noted before is committed first."""
        self._thread = eventlet.spawn(self._run)
        if self._store.pending:
            self._on_note()

    def commit(self) -> None:
        """Wait until what was just noted is committed; not at all while the journal is degraded.

        To be called in the same breath as the change, before any other green thread runs. Raises Unavailable after
        ``stop``: nothing that is answered then would be in the journal.
        """
        if self._is_stopped:
            raise Unavailable("the controller is stopping; ask again when it has started anew")
        if self._store.failure is not None or self._thread is None:
            return
        # Who asks for what is there already may have asked before: what made it so can still be on its way.
        batch = self._done if self._store.pending else self._under_way
        if batch is not None:
            with eventlet.Timeout(WAIT_SECONDS, False):
                batch.wait()

    def flush(self) -> bool:
        """Commit what is noted, however long it takes; returns whether nothing is missing in the journal then.

        A degraded journal gets another chance.
        """
        # In a green thread of its own: whoever loses patience with this one must not leave a write alone.
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
            # Where the first attempt fails the second writes the whole.
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
            # The whole state is much to write down, and nothing that is worth it while the file takes not even a page.
            failure = self._in_other_thread(self._store.probe)
            if failure is not None:
                self._settle(failure)
                return
        batch = in_steps(self._store.dequeue_in_steps())
        # Whoever waits from here on has changes that are not in this batch.
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
        except Exception as error:  # whatever it is, the loop must go on without a journal
            return f"{self._store.path}: {type(error).__name__}: {error}"
        return failure

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

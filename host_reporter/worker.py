"""The agent's threads: all of them are started here, end in the same way, and report a fault in the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Worker:
    """A thread that calls ``work``, and then each of ``last`` in order, whatever has failed before.

    The thread calls ``failed`` with each fault. The whole agent stops then, because nobody would notice that a part of
    it is missing. ``news`` guards what the thread shares with others, and wakes it.
    """

    def __init__(
        self, name: str, work: Callable[[], None], *last: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self.news = threading.Condition()
        self.is_stopping = False
        self._steps = (work, *last)
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_started = False

    def start(self) -> None:
        """Start the thread; later calls do nothing."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()

    def stop(self, seconds: float) -> None:
        """Tell the thread to end, and wait for its end for at most ``seconds``."""
        self.request_stop()
        if self._is_started:
            self._thread.join(seconds)

    def request_stop(self) -> None:
        """Tell the thread to end."""
        with self.news:
            self.is_stopping = True
            self.news.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait, in the thread, for ``seconds`` or until it must end. Returns whether it must end."""
        with self.news:
            return self.news.wait_for(lambda: self.is_stopping, seconds)

    def _run(self) -> None:
        for step in self._steps:
            try:
                step()
            except Exception as error:
                self._failed(error)


def in_own_thread(function: Callable[[], Result], name: str) -> Result:
    """Call a function in a thread that ends with it. Returns its result, and raises what it raises."""
    results: list[Result] = []
    faults: list[Exception] = []

    def call() -> None:
        try:
            results.append(function())
        except Exception as error:
            faults.append(error)

    thread = threading.Thread(target=call, name=name, daemon=True)
    thread.start()
    thread.join()
    if faults:
        raise faults[0]
    return results[0]

"""Logs a lasting problem once, and once more when it is over.

An event, such as a repair, is a line each time.
"""

from __future__ import annotations

import logging
import threading

MAX_KEYS = 10_000
"""Remember at most so many keys; the oldest ones are forgotten first."""


class Notices:
    """Remembers by key what was logged last. For all threads."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, key: str, message: str, level: int = logging.WARNING) -> None:
        """Log ``message`` unless it is what was said under ``key`` last."""
        with self._lock:
            if self._said.get(key) == message:
                return
            while len(self._said) >= MAX_KEYS:
                del self._said[next(iter(self._said))]
            self._said[key] = message
        self._log.log(level, "%s", message)

    def happened(self, message: str, level: int = logging.WARNING) -> None:
        """Log something that is over once it is said, each time that it happens."""
        self._log.log(level, "%s", message)

    def clear(self, key: str, message: str | None = None) -> None:
        """What was said under ``key`` no longer holds; ``message`` is logged if something had been said."""
        with self._lock:
            was_said = self._said.pop(key, None) is not None
        if was_said and message is not None:
            self._log.info("%s", message)

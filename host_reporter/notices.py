"""Logs a lasting problem once, and once more when it is over.

An event, such as a repair, is logged each time.
"""

from __future__ import annotations

import logging
import threading

MAX_KEYS = 10_000
"""Remember at most this many keys; the oldest ones are forgotten first."""


class Notices:
    """Remembers the last message of each key. Any thread may call it."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, key: str, message: str, level: int = logging.WARNING) -> None:
        """Log ``message``, unless it is the last message of ``key``."""
        with self._lock:
            if self._logged.get(key) == message:
                return
            while len(self._logged) >= MAX_KEYS:
                del self._logged[next(iter(self._logged))]
            self._logged[key] = message
        self._log.log(level, "%s", message)

    def happened(self, message: str, level: int = logging.WARNING) -> None:
        """Log an event, each time that it happens."""
        self._log.log(level, "%s", message)

    def clear(self, key: str, message: str | None = None) -> None:
        """Forget the message of ``key``, because its problem is over. Logs ``message`` if there was a message."""
        with self._lock:
            was_logged = self._logged.pop(key, None) is not None
        if was_logged and message is not None:
            self._log.info("%s", message)

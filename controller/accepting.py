"""Accepts connections for ever: neither a peer that is gone already nor a lack of files ends a listener."""

from __future__ import annotations

import errno
import logging
import time
from typing import Any

import eventlet

LOG = logging.getLogger("trainyard.listen")
PAUSE_SECONDS = 0.1
"""Pause this long before the next attempt where this machine has no free file: connections that end free some."""
SAY_AGAIN_SECONDS = 60.0
"""Log the lack of files at most this often."""

_OF_ONE_PEER = {errno.ECONNABORTED, errno.ECONNRESET, errno.ENOTCONN, errno.EPROTO, errno.EPERM}


class Acceptor:
    """Accepts connections from ``listener``, a green socket. ``name`` says in the log what listens there."""

    def __init__(self, listener: Any, name: str) -> None:
        self._listener = listener
        self._name = name
        self._say_after = 0.0

    def accept(self) -> tuple[Any, Any]:
        """Returns the next connection and its peer's address. Waits as long as it takes, and raises nothing."""
        while True:
            try:
                connection, address = self._listener.accept()
            except Exception as error:  # whatever the error, the next connection must be accepted
                if getattr(error, "errno", None) not in _OF_ONE_PEER:
                    self._say(str(getattr(error, "strerror", None) or repr(error)))
                    eventlet.sleep(PAUSE_SECONDS)
                continue
            return connection, address

    def _say(self, problem: str) -> None:
        now = time.monotonic()
        if now >= self._say_after:
            self._say_after = now + SAY_AGAIN_SECONDS
            LOG.error("%s cannot take connections for now: %s; it goes on trying", self._name, problem)

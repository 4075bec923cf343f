"""Ends a connection so that its peer can still read what was sent last."""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

LOG = logging.getLogger(__name__)
SECONDS = 0.5
MOST_BYTES = 65536


def linger(connection: Any, seconds: float = SECONDS) -> None:
    """Send nothing more, and read until the peer ends the connection, ``seconds`` at most; the caller then closes it.

    A socket that is closed while bytes of the peer are unread resets the connection. The peer then loses what it has
    not read yet, such as the TLS alert that says why it is refused (RFC 1122, 4.2.2.13). ``connection`` is a green
    socket, with or without TLS. Raises nothing.
    """
    deadline, left = time.monotonic() + seconds, MOST_BYTES
    try:
        connection.shutdown(socket.SHUT_WR)
        while left > 0 and (remaining := deadline - time.monotonic()) > 0:
            connection.settimeout(remaining)
            data = connection.recv(left)
            if not data:
                return
            left -= len(data)
    except (OSError, ValueError) as error:
        LOG.debug("a connection has ended while its last bytes were read: %s", error)

"""Many clients of ``GET /v1/events`` in one process: some read all that comes, others read nothing.

Run as a program: the port, how many read, how many do not, and a file. When all have connected it writes a line on
stdout. After SIGTERM it writes a JSON object into the file: for each event ``settings``, by its id, how many clients
got it, and when the last one did, by the clock that all processes share (``time.monotonic``); how many gaps readers
were told of; how many of their streams ended; and the bytes that came.
"""

from __future__ import annotations

import json
import re
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

_REQUEST = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
_MARKER = re.compile(rb"id: (\d+)\nevent: (settings|gap)\n")
_TAIL = 64
"""A marker is shorter: so much of what came is looked at again with what comes next."""
_STALLED_BUFFER = 4096


class Reader:
    """A client that reads."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._tail = b""

    def read(self) -> tuple[int, list[tuple[int, bytes]]]:
        """Returns how many bytes came, and the id and the kind of each marker in them."""
        data = self.connection.recv(262_144)
        text = self._tail + data
        found, end = [], 0
        for match in _MARKER.finditer(text):
            found.append((int(match[1]), match[2]))
            end = match.end()
        self._tail = text[max(end, len(text) - _TAIL) :]
        return len(data), found


def main(port: int, readers: int, stalled: int, file: Path) -> int:
    """Read until SIGTERM."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    silent = [_connect(port, _STALLED_BUFFER) for _ in range(stalled)]
    selector = selectors.DefaultSelector()
    for _ in range(readers):
        connection = _connect(port)
        selector.register(connection, selectors.EVENT_READ, Reader(connection))
    sys.stdout.write("connected\n")
    sys.stdout.flush()
    got: dict[int, list[float]] = {}
    gaps = over = size = 0
    while not ended:
        for key, _ in selector.select(0.2):
            try:
                count, markers = key.data.read()
            except ConnectionError:
                count, markers = 0, []
            if not count:
                over += 1
                selector.unregister(key.fileobj)
                continue
            size += count
            now = time.monotonic()
            for number, kind in markers:
                if kind == b"gap":
                    gaps += 1
                else:
                    entry = got.setdefault(number, [0.0, 0.0])
                    entry[0] += 1
                    entry[1] = now
    file.write_text(json.dumps({"got": got, "gaps": gaps, "over": over, "bytes": size}))
    for connection in silent:
        connection.close()
    return 0


def _connect(port: int, buffer: int | None = None) -> socket.socket:
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", port))
    connection.sendall(_REQUEST)
    return connection


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))

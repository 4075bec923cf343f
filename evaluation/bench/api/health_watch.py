"""Asks ``/healthz`` again and again on one connection, and writes down when, and how long each answer took.

Run as a program, in a process of its own, so that what a bench does itself is no part of it: port, and the file that
gets a pair of float64 an answer, by the clock that all processes share (``time.monotonic``), when it is ended.
"""

from __future__ import annotations

import array
import signal
import socket
import sys
import time
from pathlib import Path

PAUSE_SECONDS = 0.002
_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def main(port: int, file: Path) -> int:
    """Ask until SIGTERM. Exit status 1 where the connection ends before."""
    samples = array.array("d")
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    with socket.create_connection(("127.0.0.1", port), 120) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not ended:
            began = time.monotonic()
            connection.sendall(_REQUEST)
            if not connection.recv(65536):
                break
            samples.extend((began, time.monotonic() - began))
            time.sleep(PAUSE_SECONDS)
    file.write_bytes(samples.tobytes())
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))

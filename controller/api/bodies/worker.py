"""The process that parses large bodies, so that the controller's own process stays free.

It reads requests from the socket whose file descriptor is its argument, and ends when that is closed. A request is a
line with the kind and the number of bytes, followed by the bytes. The answer is a sequence of frames, each after its
length.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys

from controller.api.bodies import work

NICENESS = 5
"""Gives the controller precedence on a machine with few processors."""
LENGTH = struct.Struct("!I")


def serve(connection: socket.socket) -> None:
    """Answer requests until the other side ends the connection."""
    requests = connection.makefile("rb")
    while line := requests.readline():
        kind, size = line.decode().split()
        for frame in work.answer(kind, requests.read(int(size))):
            connection.sendall(LENGTH.pack(len(frame) + 1) + frame)
        connection.sendall(LENGTH.pack(0))


def main() -> int:
    """Serve the controller that has started this process. Signals are ignored: the controller ends this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        connection.setblocking(True)  # the controller's green sockets are not
        try:
            serve(connection)
        except OSError:  # the controller is gone
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

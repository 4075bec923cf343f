"""The process that checks large bodies, so that the controller's own is free meanwhile.

It reads requests from the socket whose file descriptor it is given, and ends when that is closed. A request is a line
with the kind and the number of bytes, then these; the answer is a number of frames, each with its length in front.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys

from controller.api.bodies import work

NICENESS = 5
"""The controller itself goes first where there are few processors."""
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
    """Serve the controller that has started this process. A signal to all of them is its affair: it ends this one."""
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

"""Records the bytes of two ranks that exchange gradients over loopback, as the agent counts them, beside their epochs.

``python -m tests.support.agent.ring_traffic > tests/data/traffic/ring.json``. Times are in seconds from the start.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

from host_reporter.discovery.sockets.netlink import Diag

GRADIENT_BYTES, STEPS, EPOCHS = 400_000, 60, 8
STEP_SECONDS, VALIDATION_SECONDS = 0.04, 0.3
METRIC_BYTES = 64
START_BYTES = 3 * GRADIENT_BYTES
"""Sent once before the first step: the weights, and the optimizer's state."""


def main() -> None:
    """Write one JSON document."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    if (child := os.fork()) == 0:
        _train(socket.create_connection(("127.0.0.1", port)), [])
        os._exit(0)
    link, _ = server.accept()
    began, is_over = time.monotonic(), threading.Event()
    counts: list[tuple[float, int, int]] = []
    counting = threading.Thread(target=_count, args=(port, began, is_over, counts))
    counting.start()
    ends: list[float] = []
    _train(link, ends)
    is_over.set()
    counting.join()
    os.waitpid(child, 0)
    document = {
        "bytes_of_iteration": GRADIENT_BYTES,
        "iterations_of_epoch": STEPS,
        "points": [[number, round(end - began, 3)] for number, end in enumerate(ends, 1)],
        "counts": counts,
    }
    json.dump(document, sys.stdout)


def _train(link: socket.socket, ends: list[float]) -> None:
    _exchange(link, START_BYTES)
    for _ in range(EPOCHS):
        for _ in range(STEPS):
            time.sleep(STEP_SECONDS)
            _exchange(link, GRADIENT_BYTES)
        time.sleep(VALIDATION_SECONDS)
        _exchange(link, METRIC_BYTES)
        ends.append(time.monotonic())


def _exchange(link: socket.socket, size: int) -> None:
    """Send and receive so many bytes at once."""
    sending = threading.Thread(target=link.sendall, args=(bytes(size),))
    sending.start()
    while size:
        size -= len(link.recv(min(size, 2**20)))
    sending.join()


def _count(port: int, began: float, is_over: threading.Event, counts: list[tuple[float, int, int]]) -> None:
    diag = Diag()
    while not is_over.wait(1.0):
        for sock in diag.sockets():
            if sock.local_port == port and sock.remote_port:
                counts.append((round(time.monotonic() - began, 3), sock.acked, sock.received))
    diag.close()


if __name__ == "__main__":
    main()

"""Two streams that keep links full: numbered UDP packets just under a rate, and TCP with a window that queues hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.lab.switch_fixtures import Bridge

WINDOW = 200_000
"""Bytes of TCP on the way at most. A queue holds 1,000 packets, so that it drops none of them."""


class Numbered(NamedTuple):
    """What became of numbered packets: how many were sent, came, and came after one with a higher number."""

    sent: int
    came: int
    late: int


@dataclass
class Streams:
    """The results, known after the streams have ended: the packets, and TCP's rate in bit/s."""

    numbered: list[Numbered] = field(default_factory=list)
    tcp_bps: list[float] = field(default_factory=list)


@contextmanager
def full_links(bridge: Bridge, rate_bps: float, tcp_port: int) -> Iterator[Streams]:
    """While this is open, host 1 sends numbered packets to host 2, and host 2 sends TCP to host 1 as fast as it can.

    Both ends of the TCP stream have ``tcp_port``, so that a job's flows to that port are its data and its answers.
    """
    streams = Streams()
    take_numbers = _start(bridge, 2, _COUNT)
    take_bytes = _start(bridge, 1, _DRAIN, str(tcp_port), str(WINDOW))
    for sink in (take_numbers, take_bytes):
        _first_line(sink)
    send_numbers = _start(bridge, 1, _NUMBER, "10.0.0.2", str(rate_bps))
    send_bytes = _start(bridge, 2, _FILL, "10.0.0.1", str(tcp_port))
    processes = (send_numbers, send_bytes, take_numbers, take_bytes)
    try:
        yield streams
        # Each sender ends when its standard input does, and its receiver soon after it.
        out = [process.communicate(timeout=30)[0].split() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    came, late = map(int, out[2])
    streams.numbered.append(Numbered(int(out[0][0]), came, late))
    streams.tcp_bps.append(float(out[3][0]))


def _start(bridge: Bridge, host: int, script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["ip", "netns", "exec", f"{bridge.name}h{host}", sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _first_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.stdout.readline()


_NUMBER = """
import select, socket, sys, time
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
place, rate, sent = (sys.argv[1], 5900), float(sys.argv[2]), 0
began = time.monotonic()
allowed = last = 0.0
while not select.select([sys.stdin], [], [], 0.001)[0]:
    # A sender that was late makes up for no more than 50 ms of its time.
    now = time.monotonic() - began
    allowed, last = min(allowed + (now - last) * rate / 8, rate / 8 * 0.05), now
    while allowed >= 1442:
        stream.sendto(sent.to_bytes(4, "big") + bytes(1396), place)
        sent, allowed = sent + 1, allowed - 1442
time.sleep(1.0)
stream.sendto(b"end", place)
print(sent)
"""
_COUNT = """
import socket
RECEIVE_BUFFER_FORCE = 33
stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER_FORCE, 1 << 24)
stream.bind(("0.0.0.0", 5900))
print("listening", flush=True)
came, highest, late = set(), -1, 0
while (packet := stream.recv(2000)) != b"end":
    number = int.from_bytes(packet[:4], "big")
    late += number < highest
    highest = max(highest, number)
    came.add(number)
print(len(came), late)
"""
_FILL = """
import select, socket, sys
port = int(sys.argv[2])
with socket.create_connection((sys.argv[1], port), source_address=("", port)) as connection:
    while not select.select([sys.stdin], [], [], 0)[0]:
        connection.sendall(bytes(16384))
"""
_DRAIN = """
import socket, sys, time
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[2]) // 2)
server.bind(("0.0.0.0", int(sys.argv[1])))
server.listen()
print("listening", flush=True)
connection, _ = server.accept()
began, total = time.monotonic(), 0
while data := connection.recv(65536):
    total += len(data)
print(8 * total / (time.monotonic() - began))
"""

"""What a packet carries when it crosses the loopback: the mark that a host gave it."""

from __future__ import annotations

import contextlib
import socket
import time

from evaluation.bench.support.hosts.job_process import JobProcess


class Sniffer:
    """The DSCPs of data packets that cross the loopback, by source port."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self._socket.bind(("lo", 0x0800))
        self._socket.settimeout(0.5)

    def dscp_of(self, job: JobProcess, port: int) -> int | None:
        """Of what a job sends now on the connection that it made last, which has this port. None: nothing came."""
        self._drop_old()
        job.do("send 2000")
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            try:
                packet = self._socket.recv(65536)
            except TimeoutError:
                continue
            header = (packet[0] & 15) * 4
            if packet[9] == 6 and len(packet) > 1500 and int.from_bytes(packet[header : header + 2], "big") == port:
                return packet[1] >> 2
        return None

    def _drop_old(self) -> None:
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(10_000):
                self._socket.recv(65536)
        self._socket.settimeout(0.5)

    def close(self) -> None:
        self._socket.close()

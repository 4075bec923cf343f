"""The ends of streams that fill links, as programs: ``stream_ends.py NAME ARGUMENT...`` with the names in ``ENDS``.

A sender runs until its standard input ends. A receiver prints ``listening`` first, and its results last. A job's
traffic is TCP, whose packets a sender would send again. So a numbered packet of a job is a lone TCP segment, made here.
It has the flag RST, because no kernel answers that.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping

PACKET_BYTES = 1442
"""A numbered packet with its Ethernet header has this many bytes."""
_LATE_SECONDS = 0.01
"""A sender that was late makes up for no more than this."""
_DRAIN_SECONDS = 1.0
"""Let what waits in queues arrive before the last packet, whose number is ``_END``."""
_END = 2**32 - 1
_RECEIVE_BUFFER_FORCE = 33
_BUFFER_BYTES = 1 << 24
_UDP_HEADERS, _TCP_HEADERS = 42, 54
_RESET = 0x04
_TCP_WORDS = 5


def send_datagrams(address: str, port: str, rate_bps: str) -> None:
    """Send numbered UDP packets, and print how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        padding = bytes(PACKET_BYTES - _UDP_HEADERS - 4)
        _send(float(rate_bps), lambda number: out.sendto(struct.pack("!I", number) + padding, (address, int(port))))


def send_segments(address: str, port: str, rate_bps: str) -> None:
    """Send numbered TCP segments of no connection, and print how many."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as out:
        header = struct.pack("!HHIIBBHHH", int(port), int(port), 0, 0, _TCP_WORDS << 4, _RESET, 0, 0, 0)
        padding = bytes(PACKET_BYTES - _TCP_HEADERS - 4)
        _send(float(rate_bps), lambda number: out.sendto(header + struct.pack("!I", number) + padding, (address, 0)))


def count_datagrams(port: str) -> None:
    """Receive numbered UDP packets, and print how many came, and how many after one with a higher number."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
        stream.bind(("0.0.0.0", int(port)))
        _count(stream, lambda packet: struct.unpack_from("!I", packet)[0])


def count_segments(port: str) -> None:
    """Receive numbered TCP segments, and print how many came, and how many after one with a higher number."""

    def number(packet: bytes) -> int | None:
        tcp = (packet[0] & 15) * 4
        is_ours = struct.unpack_from("!H", packet, tcp + 2)[0] == int(port)
        return struct.unpack_from("!I", packet, tcp + 4 * _TCP_WORDS)[0] if is_ours else None

    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as stream:
        _count(stream, number)


def fill(address: str, port: str, source_port: str) -> None:
    """Send TCP as fast as the network takes it. A source port of 0 is any."""
    with socket.create_connection((address, int(port)), source_address=("", int(source_port))) as connection:
        while _goes_on(0.0):
            connection.sendall(bytes(16384))


def drain(port: str, window: str) -> None:
    """Receive TCP with ``window`` bytes on the way at most, and print the rate in bit/s."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(window) // 2)
        server.bind(("0.0.0.0", int(port)))
        server.listen()
        _say("listening")
        connection, _ = server.accept()
        with connection:
            began, total = time.monotonic(), 0
            while data := connection.recv(65536):
                total += len(data)
            _say(8 * total / (time.monotonic() - began))


ENDS: Mapping[str, Callable[..., None]] = {
    each.__name__: each for each in (send_datagrams, send_segments, count_datagrams, count_segments, fill, drain)
}


def _send(rate_bps: float, send: Callable[[int], object]) -> None:
    began, sent = time.monotonic(), 0
    allowed = last = 0.0
    while _goes_on(0.001):
        now = time.monotonic() - began
        allowed, last = min(allowed + (now - last) * rate_bps / 8, rate_bps / 8 * _LATE_SECONDS), now
        while allowed >= PACKET_BYTES:
            send(sent)
            sent, allowed = sent + 1, allowed - PACKET_BYTES
    time.sleep(_DRAIN_SECONDS)
    send(_END)
    _say(sent)


def _count(stream: socket.socket, number_of: Callable[[bytes], int | None]) -> None:
    stream.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, _BUFFER_BYTES)
    _say("listening")
    came: set[int] = set()
    highest, late = -1, 0
    while (number := number_of(stream.recv(2000))) != _END:
        if number is not None:
            late += number < highest
            highest = max(highest, number)
            came.add(number)
    _say(f"{len(came)} {late}")


def _goes_on(seconds: float) -> bool:
    return not select.select([sys.stdin], [], [], seconds)[0]


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    ENDS[sys.argv[1]](*sys.argv[2:])

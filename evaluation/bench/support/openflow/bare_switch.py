"""A peer that says it is a switch and takes every rule: as little of OpenFlow 1.3 as the controller asks of one.

For measurements of the controller alone: a real switch's own work would be a part of them. Run as a program, in a
process of its own, it connects to the port that it is given, as the datapath that it is given, and answers until it is
ended. With a number of ports it counts traffic at each: each queue of a port has a load of its own, which swings.
"""

from __future__ import annotations

import math
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

_HELLO, _ECHO_REQUEST, _ECHO_REPLY, _EXPERIMENTER = 0, 2, 3, 4
_FEATURES_REQUEST, _FEATURES_REPLY, _FLOW_MOD = 5, 6, 14
_PARTS_REQUEST, _PARTS_REPLY, _BARRIER_REQUEST, _BARRIER_REPLY = 18, 19, 20, 21
_FLOWS, _AGGREGATE, _RECEIVED, _QUEUES, _PORTS = 1, 2, 4, 5, 13
_MORE = 1
_QUEUES_A_PORT = 8
_MOST_BODY = 60_000
_ALL_TABLES = 255
_MOST_BPS = 1e8
_SWING_SECONDS = 60.0
_ONF, _CONTROL, _ADD = 0x4F4E4600, 2300, 2301
_DELETE, _DELETE_STRICT = 3, 4


class Rule(NamedTuple):
    """A rule as it was given. ``times`` are its timeouts and flags, packed."""

    cookie: int
    times: bytes
    instructions: bytes


class BareSwitch:
    """One connection. It counts the traffic of ``ports`` ports, which are numbered from 1."""

    def __init__(self, port: int, dpid: int, ports: int = 0) -> None:
        self._rules: dict[tuple[int, int, bytes], Rule] = {}
        self._dpid = dpid
        self._ports = ports
        self._began = time.monotonic()
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.settimeout(None)
        self._input = self._socket.makefile("rb", buffering=1 << 20)

    def run(self) -> None:
        """Answer until the other side ends the connection."""
        self._send(_HELLO, 1)
        while len(head := self._input.read(8)) == 8:
            _, kind, length, xid = struct.unpack("!BBHI", head)
            self._answer(kind, xid, self._input.read(length - 8))

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == _ECHO_REQUEST:
            self._send(_ECHO_REPLY, xid, body)
        elif kind == _FEATURES_REQUEST:
            self._send(_FEATURES_REPLY, xid, struct.pack("!QIBBxxII", self._dpid, 0, 254, 0, 0, 0))
        elif kind == _BARRIER_REQUEST:
            self._send(_BARRIER_REPLY, xid)
        elif kind == _FLOW_MOD:
            self._change(body)
        elif kind == _PARTS_REQUEST:
            (what,) = struct.unpack("!H", body[:2])
            self._send_parts(xid, what, list(self._records(what, body[8:])))
        elif kind == _EXPERIMENTER:
            self._experimenter(xid, body)

    def _send_parts(self, xid: int, what: int, records: list[bytes]) -> None:
        """Send records in as many messages as they need, of which there is one at least."""
        parts = [b""]
        for record in records:
            if len(parts[-1]) + len(record) > _MOST_BODY:
                parts.append(b"")
            parts[-1] += record
        for part in parts:
            more = 0 if part is parts[-1] else _MORE
            self._send(_PARTS_REPLY, xid, struct.pack("!HHxxxx", what, more) + part)

    def _records(self, what: int, request: bytes) -> Iterator[bytes]:
        if what == _AGGREGATE:
            yield struct.pack("!QQIxxxx", 0, 0, len(self._asked(request)))
        elif what == _FLOWS:
            for (table, priority, match), rule in self._asked(request):
                tail = struct.pack("!Q16x", rule.cookie) + match + rule.instructions
                yield struct.pack("!HBx8xH", 24 + len(tail), table, priority) + rule.times + b"\0" * 4 + tail
        elif what == _PORTS:
            for port in range(1, self._ports + 1):
                yield struct.pack("!I4x6x2x16s32x", port, f"p{port}".encode())
        elif what == _RECEIVED:
            seconds = time.monotonic() - self._began
            for port in range(1, self._ports + 1):
                yield struct.pack(
                    "!I4xQQQ72xII", port, 0, 0, self._bytes(port, _QUEUES_A_PORT, seconds), int(seconds), 0
                )
        elif what == _QUEUES:
            seconds = time.monotonic() - self._began
            for port in range(1, self._ports + 1):
                for queue in range(_QUEUES_A_PORT):
                    sent = self._bytes(port, queue, seconds)
                    yield struct.pack("!IIQQQII", port, queue, sent, 0, 0, int(seconds), 0)

    def _asked(self, request: bytes) -> list[tuple[tuple[int, int, bytes], Rule]]:
        """Returns the rules that a request for flows is about: by its table, and its cookie under its mask."""
        wanted, cookie, mask = struct.unpack("!B15xQQ", request[:32])
        return [
            (key, rule)
            for key, rule in self._rules.items()
            if wanted in (_ALL_TABLES, key[0]) and (rule.cookie ^ cookie) & mask == 0
        ]

    @staticmethod
    def _bytes(port: int, queue: int, seconds: float) -> int:
        """Returns what a queue has sent: the integral of a load between 0 and ``_MOST_BPS``, which swings."""
        turn = 2 * math.pi / _SWING_SECONDS
        phase = port * 2.4 + queue * 0.9
        swung = (math.cos(phase) - math.cos(phase + turn * seconds)) / turn
        return round((seconds + swung) / 2 * _MOST_BPS / 8)

    def _experimenter(self, xid: int, body: bytes) -> None:
        owner, what = struct.unpack("!II", body[:8])
        if owner != _ONF:
            return
        if what == _ADD:
            self._change(body[24:])
        elif what == _CONTROL:
            bundle, kind, flags = struct.unpack("!IHH", body[8:16])
            # Each request has an even number, and its reply the next one.
            self._send(_EXPERIMENTER, xid, struct.pack("!IIIHH", _ONF, _CONTROL, bundle, kind + 1, flags))

    def _change(self, flow_mod: bytes) -> None:
        cookie, mask, table, command, idle, hard, priority, flags = struct.unpack("!QQBBHHH12xHxx", flow_mod[:40])
        (length,) = struct.unpack("!H", flow_mod[42:44])
        end = 40 + (length + 7) // 8 * 8
        key = (table, priority, flow_mod[40:end])
        if command == _DELETE:
            for other, rule in list(self._rules.items()):
                if table in (_ALL_TABLES, other[0]) and (rule.cookie ^ cookie) & mask == 0:
                    del self._rules[other]
        elif command == _DELETE_STRICT:
            self._rules.pop(key, None)
        else:
            self._rules[key] = Rule(cookie, struct.pack("!HHH", idle, hard, flags), flow_mod[end:])

    def _send(self, kind: int, xid: int, body: bytes = b"") -> None:
        self._socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)


if __name__ == "__main__":
    BareSwitch(*map(int, sys.argv[1:])).run()

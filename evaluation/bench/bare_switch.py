"""A peer that says it is a switch and takes every rule: as little of OpenFlow 1.3 as the controller asks of one.

For measurements of the controller alone: a real switch's own work would be a part of them. Run as a program, in a
process of its own, it connects to the port that it is given and answers until it is ended.
"""

from __future__ import annotations

import socket
import struct
import sys

_HELLO, _ECHO_REQUEST, _ECHO_REPLY, _EXPERIMENTER = 0, 2, 3, 4
_FEATURES_REQUEST, _FEATURES_REPLY, _FLOW_MOD = 5, 6, 14
_PARTS_REQUEST, _PARTS_REPLY, _BARRIER_REQUEST, _BARRIER_REPLY = 18, 19, 20, 21
_AGGREGATE, _PORTS = 2, 13
_ONF, _CONTROL, _ADD = 0x4F4E4600, 2300, 2301
_GATE_OWNER = 0x7473
_MODIFY_STRICT, _DELETE_STRICT = 2, 4


class BareSwitch:
    """One connection. ``rules``: how many it was given, less those that were taken away, beside the gate."""

    def __init__(self, port: int, dpid: int) -> None:
        self.rules = 0
        self._dpid = dpid
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
            self._count(body)
        elif kind == _PARTS_REQUEST:
            (what,) = struct.unpack("!H", body[:2])
            answer = struct.pack("!QQIxxxx", 0, 0, self.rules) if what == _AGGREGATE else b""
            self._send(_PARTS_REPLY, xid, struct.pack("!HHxxxx", what, 0) + answer)
        elif kind == _EXPERIMENTER:
            self._experimenter(xid, body)

    def _experimenter(self, xid: int, body: bytes) -> None:
        owner, what = struct.unpack("!II", body[:8])
        if owner != _ONF:
            return
        if what == _ADD:
            self._count(body[24:])
        elif what == _CONTROL:
            bundle, kind, flags = struct.unpack("!IHH", body[8:16])
            # Each request has an even number, and its reply the next one.
            self._send(_EXPERIMENTER, xid, struct.pack("!IIIHH", _ONF, _CONTROL, bundle, kind + 1, flags))

    def _count(self, flow_mod: bytes) -> None:
        cookie, command = struct.unpack("!Q9xB", flow_mod[:18])
        if cookie >> 48 != _GATE_OWNER:
            self.rules += -1 if command == _DELETE_STRICT else 1

    def _send(self, kind: int, xid: int, body: bytes = b"") -> None:
        self._socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)


if __name__ == "__main__":
    BareSwitch(int(sys.argv[1]), int(sys.argv[2])).run()

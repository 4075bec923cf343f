"""OpenFlow messages to try a reader with: a real switch's, those with faults in them, and random ones with a structure.

All are made from a seed. Each comes as a ``Case`` with what the controller has asked before it.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ryu.ofproto import ofproto_v1_3 as ofp

from topologies.checkout import ROOT

RECORDED = ROOT / "tests" / "data" / "openflow_sessions.json"
"""What ``tests/support/lab/record_openflow.py`` has recorded."""

Session = list[tuple[str, bytes]]

_BUNDLE_CONTROL = struct.pack("!IIIHH", 0x4F4E4600, ofp.ONF_ET_BUNDLE_CONTROL, 1, 0, 3)
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 24, 0x7FFF, 0x8000, 0xFFF8, 0xFFFF)
_SIZES = {ofp.OFPMP_QUEUE: 40, ofp.OFPMP_PORT_STATS: 112, ofp.OFPMP_PORT_DESC: 64, ofp.OFPMP_AGGREGATE: 24}
_PARTS = (ofp.OFPMP_FLOW,) * 5 + tuple(_SIZES)
_NEVER_ASKED = (ofp.OFPMP_DESC, ofp.OFPMP_TABLE, ofp.OFPMP_GROUP, ofp.OFPMP_GROUP_DESC, ofp.OFPMP_METER_CONFIG,
                ofp.OFPMP_TABLE_FEATURES, ofp.OFPMP_EXPERIMENTER)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Bytes of a peer. ``early``: they come where its hello would. ``asked``: the request before, if there is one."""

    data: bytes
    asked: bytes | None = None
    early: bool = False


def recorded() -> list[Session]:
    """The sessions of a real switch: ("asks", a request of the controller) or ("tells", a message of the switch)."""
    document = json.loads(RECORDED.read_text())
    return [[(kind, bytes.fromhex(data)) for kind, data in session] for session in document["sessions"]]


def message(kind: int, body: bytes, xid: int = 7, version: int = 4) -> bytes:
    """An OpenFlow message with the right length, as long as that has 16 bits."""
    return struct.pack("!BBHI", version, kind, min(0xFFFF, 8 + len(body)), xid) + body


def parts(kind: int, body: bytes, flags: int = 0, xid: int = 7) -> bytes:
    """One part of an answer in parts."""
    return message(ofp.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", kind, flags) + body, xid)


def parts_request(kind: int, xid: int = 7) -> bytes:
    """A request for an answer in parts."""
    return message(ofp.OFPT_MULTIPART_REQUEST, struct.pack("!HH4x", kind, 0), xid)


class Generator:
    """Endless cases from a seed: half of them recordings with faults, half random structures."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._fault_rate = 0.0
        self._asked: dict[bytes, bytes] = {}
        self._told: list[bytes] = []
        for session in recorded():
            self._asked |= {data[4:8]: data for kind, data in session if kind == "asks"}
            self._told += [data for kind, data in session if kind == "tells"]

    def cases(self, count: int) -> Iterator[Case]:
        """So many cases."""
        for number in range(count):
            yield self._mutated() if number % 2 else self._structured()

    # Recordings with faults.

    def _mutated(self) -> Case:
        told = self._random.choice(self._told)
        data = bytearray(told)
        for _ in range(self._random.choice((1, 1, 1, 2, 3, 8))):
            self._spoil(data)
        if self._random.random() < 0.7 and len(data) >= 4:
            struct.pack_into("!H", data, 2, min(0xFFFF, len(data)))
        return Case(bytes(data), self._asked.get(told[4:8]), early=told[1] == ofp.OFPT_HELLO)

    def _spoil(self, data: bytearray) -> None:
        draw = self._random
        at = draw.randrange(len(data)) if data else 0
        match draw.randrange(7):
            case 0 if data:
                data[at] ^= 1 << draw.randrange(8)
            case 1 if data:
                data[at] = draw.randrange(256)
            case 2 | 3 if len(data) > 3:
                struct.pack_into("!H", data, at & ~1 if at < len(data) - 1 else 0, draw.choice(_LENGTHS))
            case 4:
                del data[at : at + draw.randrange(1, 24)]
            case 5:
                data[at:at] = draw.randbytes(draw.randrange(1, 24))
            case 6:
                other = draw.choice(self._told)
                begin = draw.randrange(len(other))
                data[at:at] = other[begin : begin + draw.randrange(1, 200)]

    # Random structures.

    def _structured(self) -> Case:
        draw = self._random
        self._fault_rate = draw.choice((0.0, 0.01, 0.05, 0.3))
        if draw.random() < 0.6:
            kind = draw.choice(_PARTS)
            answer = draw.choice(_NEVER_ASKED) if draw.random() < 0.05 else kind
            return Case(parts(answer, self._body(answer), draw.choice((0, 0, 1, 0xFFFF))), parts_request(kind))
        kind = draw.randrange(32)
        match kind:
            case ofp.OFPT_HELLO:
                return Case(message(kind, self._several(self._hello_element), version=draw.randrange(8)), early=True)
            case ofp.OFPT_ERROR:
                head = struct.pack("!HH", draw.choice((*range(14), 0xFFFF)), draw.randrange(20))
                return Case(message(kind, head + draw.randbytes(draw.randrange(90))), early=draw.random() < 0.1)
            case ofp.OFPT_FLOW_REMOVED:
                return Case(message(kind, draw.randbytes(40) + self._match()))
            case ofp.OFPT_PORT_STATUS:
                return Case(message(kind, bytes([draw.randrange(4)]) + bytes(7) + draw.randbytes(64)))
            case ofp.OFPT_EXPERIMENTER:
                body = _BUNDLE_CONTROL + self._several(self._property)
                return Case(message(kind, body), message(kind, _BUNDLE_CONTROL))
            case ofp.OFPT_BARRIER_REPLY:
                return Case(message(kind, b""), message(ofp.OFPT_BARRIER_REQUEST, b""))
            case ofp.OFPT_ECHO_REPLY:
                return Case(message(kind, draw.randbytes(draw.randrange(64))), message(ofp.OFPT_ECHO_REQUEST, b""))
        return Case(message(kind, draw.randbytes(draw.randrange(80)), version=draw.choice((4,) * 9 + (0, 1, 5, 255))))

    def _several(self, make: object, most: int = 4) -> bytes:
        return b"".join(make() for _ in range(self._random.randrange(most)))  # type: ignore[operator]  # our own methods

    def _length(self, right: int) -> int:
        if self._random.random() >= self._fault_rate:
            return right
        near = self._random.choice((right - 8, right - 1, right + 1, right + 8))
        return self._random.choice((*_LENGTHS, near)) & 0xFFFF

    def _hello_element(self) -> bytes:
        bits = self._random.getrandbits(32)
        return struct.pack("!HHI", self._random.choice((1, 1, 2)), self._length(8), bits)

    def _property(self) -> bytes:
        body = self._random.randbytes(self._random.choice((4, 12)))
        return struct.pack("!HH", self._random.randrange(5), self._length(4 + len(body))) + body

    def _body(self, kind: int) -> bytes:
        draw = self._random
        if kind == ofp.OFPMP_FLOW:
            return self._several(self._rule, 6)
        size = _SIZES.get(kind, 8)
        count = 1 if kind == ofp.OFPMP_AGGREGATE else draw.randrange(5)
        return draw.randbytes(self._length(size * count) % 5000)

    def _rule(self) -> bytes:
        rest = self._random.randbytes(46) + self._match() + self._several(self._instruction)
        return struct.pack("!H", self._length(2 + len(rest))) + rest

    def _match(self) -> bytes:
        fields = self._several(self._field, 6)
        length = 4 + len(fields)
        return struct.pack("!HH", 1, self._length(length)) + fields + bytes(-length % 8)

    def _field(self, masked: bool | None = None) -> bytes:
        draw = self._random
        field = draw.choice(ofp.oxm_types)
        mask = draw.random() < 0.3 if masked is None else masked
        value = draw.randbytes(field.type.size * (1 + mask))
        vendor = b""
        number = field.num
        if isinstance(number, tuple):
            vendor, number = struct.pack("!I", number[0]), number[1]
        elif draw.random() < self._fault_rate:
            number = draw.getrandbits(23)
        length = self._length(len(vendor) + len(value)) & 0xFF
        return struct.pack("!I", (number << 9 | mask << 8 | length) & 0xFFFFFFFF) + vendor + value

    def _instruction(self) -> bytes:
        draw = self._random
        kind = draw.choice((1, 2, 3, 4, 4, 4, 5, 6))
        body = {1: 4, 2: 20, 6: 4}.get(kind)
        rest = bytes(4) + self._several(self._action, 6) if body is None else draw.randbytes(body)
        kind = draw.randrange(0x10000) if draw.random() < self._fault_rate / 2 else kind
        return struct.pack("!HH", kind, self._length(4 + len(rest))) + rest

    def _action(self) -> bytes:
        draw = self._random
        kind = draw.choice((0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 25, 25, 26, 27, 0xFFFF))
        if kind == ofp.OFPAT_SET_FIELD:
            body = self._field(masked=draw.random() < self._fault_rate)
            body += bytes(-(4 + len(body)) % 8)
        elif kind == ofp.OFPAT_EXPERIMENTER:
            body = struct.pack("!IH", draw.choice((0x2320, 0x4F4E4600)), draw.randrange(50)) + draw.randbytes(
                draw.choice((6, 6, 14, 22))
            )
        else:
            body = draw.randbytes(12 if kind == ofp.OFPAT_OUTPUT else 4)
        return struct.pack("!HH", kind, self._length(4 + len(body))) + body

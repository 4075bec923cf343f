"""The messages of one OpenFlow peer, checked and cut so that Ryu can read them. Pure: bytes in, steps out.

Every message is checked before it is read. A message ends the connection if no switch may send it, if it is malformed
or too long, or if it comes too early. Answers without a request, and events that the controller does not need, are
dropped unread. Echo requests and the choice of the version are handled here and not by Ryu, so that no peer can make
Ryu wait, write or raise.

The controller speaks OpenFlow 1.3. Source: OpenFlow Switch Specification 1.3.5, sections 6.3 and 7.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from ryu.ofproto import ofproto_common
from ryu.ofproto import ofproto_v1_3 as ofp

from controller.dataplane.openflow import PORT_REASONS, REMOVAL_REASONS
from controller.dataplane.peers import message_shapes as shapes
from controller.wire import announcement

MAX_EARLY = 1024
"""Limits the length of a hello, error or echo, in bytes, until the peer has become a switch."""
MAX_PORTS = 4096
"""A switch with more ports is refused: Ryu keeps a description of each."""
MAX_REQUESTS = 1024
"""Limits the unanswered requests. Beyond it the oldest is forgotten, and its answer is dropped."""
MAX_ERROR = 76
"""An error is cut to so many bytes: 64 of the refused message, as OpenFlow asks for, after its own 12."""
MAX_ANSWER = 32 << 20
"""Limits the length of an answer in parts, in bytes: about 200,000 rules."""
MAX_COUNTERS_ANSWER = 4 << 20
"""Limits the length of an answer on queues or on the counters of ports, in bytes.

It is enough for all queues of ours at MAX_PORTS ports, with a part for each port."""
MAX_PACKET_INS = 256
"""Read this many packets for the controller after it has asked for them; then the switch is told to send no more."""
MAX_PACKET_IN = 1024
"""Limits the length of such a packet's message, in bytes: an announcement has 256 at most."""
_PART = 1024
"""A part counts as at least so many bytes, which is the memory that it takes when it is read."""

_HEADER = Struct("!BBHI")
_PAIR = Struct("!HH")
_LONGS = Struct("!II")
_HEADER_SIZE = 8
_PARTS_SIZE = 16
_BUNDLE_SIZE = 24
_BUNDLE_CONTROL = (ofproto_common.ONF_EXPERIMENTER_ID, ofp.ONF_ET_BUNDLE_CONTROL)
_NAMES: dict[int, str] = {
    number: name.removeprefix("OFPT_")
    for name, number in vars(ofp).items()
    if name.startswith("OFPT_") and isinstance(number, int)
}
_VERSIONS = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}

_SIZES = {
    ofp.OFPT_FEATURES_REPLY: 32,
    ofp.OFPT_PORT_STATUS: 80,
    ofp.OFPT_BARRIER_REPLY: _HEADER_SIZE,
}
_ANSWER_TO = {
    ofp.OFPT_FEATURES_REQUEST: ofp.OFPT_FEATURES_REPLY,
    ofp.OFPT_ECHO_REQUEST: ofp.OFPT_ECHO_REPLY,
    ofp.OFPT_MULTIPART_REQUEST: ofp.OFPT_MULTIPART_REPLY,
    ofp.OFPT_BARRIER_REQUEST: ofp.OFPT_BARRIER_REPLY,
    ofp.OFPT_EXPERIMENTER: ofp.OFPT_EXPERIMENTER,
}
_NOTED = frozenset({*_ANSWER_TO, ofp.OFPT_SET_ASYNC})
_COUNTERS = frozenset({ofp.OFPMP_QUEUE, ofp.OFPMP_PORT_STATS})
_ANSWERS = frozenset(_ANSWER_TO.values()) - {ofp.OFPT_EXPERIMENTER}
_EVENTS = frozenset({ofp.OFPT_PORT_STATUS, ofp.OFPT_FLOW_REMOVED})
_PACKET_IN_MATCH = 24
_PACKET_IN_PADDING = 2
_SET_ASYNC = Struct("!BBHI6I")
_NO_PACKETS = _SET_ASYNC.pack(
    ofp.OFP_VERSION, ofp.OFPT_SET_ASYNC, _SET_ASYNC.size, 0, 0, 0, PORT_REASONS, PORT_REASONS, REMOVAL_REASONS, 0
)
"""Tells a switch to send no packets for the controller."""


class RefusedError(Exception):
    """The connection must end. The message is the reason; ``reply`` is sent to the peer before."""

    def __init__(self, reason: str, reply: bytes = b"") -> None:
        super().__init__(reason)
        self.reply = reply


class Step(NamedTuple):
    """One message for the controller to read, or one to send to the peer."""

    deliver: bytes = b""
    reply: bytes = b""


class _Phase(IntEnum):
    HELLO = 0
    FEATURES = 1
    PORTS = 2
    READY = 3


@dataclass(slots=True)
class _Request:
    """A request without a complete answer. ``part`` is the multipart type of its answer."""

    answer: int
    part: int | None = None
    size: int = 0


class MessageStream:
    """One connection.

    Call ``feed`` with received bytes, ``next_step`` until it is None, and ``sent`` for what is sent.
    """

    def __init__(self) -> None:
        self._phase = _Phase.HELLO
        self._data = bytearray()
        self._at = 0
        self._skip = 0
        self._pieces: deque[bytes] = deque()
        self._requests: dict[int, _Request] = {}
        self._ports: set[int] = set()
        self._packet_ins = 0

    @property
    def is_ready(self) -> bool:
        """Whether the peer has become a switch by its hello, features and ports."""
        return self._phase is _Phase.READY

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        del self._data[: self._at]
        self._at = 0
        self._data += data

    def sent(self, messages: bytes | bytearray) -> None:
        """Note whole messages that are about to be sent, so that their answers are accepted."""
        at = 0
        while at < len(messages):
            _, kind, length, xid = _HEADER.unpack_from(messages, at)
            if kind in _NOTED:
                self._note(kind, xid, messages[at : at + length])
            at += length

    def _note(self, kind: int, xid: int, message: bytes | bytearray) -> None:
        if kind == ofp.OFPT_SET_ASYNC:
            self._packet_ins = MAX_PACKET_INS if _LONGS.unpack_from(message, _HEADER_SIZE)[0] else 0
            return
        answer = _ANSWER_TO[kind]
        if answer == ofp.OFPT_EXPERIMENTER and not _is_bundle_control(message):
            return
        part = _PAIR.unpack_from(message, _HEADER_SIZE)[0] if answer == ofp.OFPT_MULTIPART_REPLY else None
        if len(self._requests) >= MAX_REQUESTS:
            del self._requests[next(iter(self._requests))]
        self._requests[xid] = _Request(answer, part)

    def next_step(self) -> Step | None:
        """Returns the next step, or None if more must be received first. Raises RefusedError."""
        while not self._pieces:
            if not self._skipped():
                return None
            left = len(self._data) - self._at
            if left < _HEADER_SIZE:
                return None
            version, kind, length, xid = _HEADER.unpack_from(self._data, self._at)
            if self._is_unread(version, kind, length, xid):
                self._skip = length
                continue
            if left < length:
                return None
            message = bytes(memoryview(self._data)[self._at : self._at + length])
            self._at += length
            try:
                reply = self._read(kind, xid, message)
            except shapes.MalformedError as error:
                raise RefusedError(f"its {_name(kind)} message is malformed: {error}") from error
            if reply:
                return Step(reply=reply)
        return Step(deliver=self._pieces.popleft())

    def _skipped(self) -> bool:
        """Skip received bytes of a dropped message. Returns whether all of it is skipped."""
        step = min(self._skip, len(self._data) - self._at)
        self._at += step
        self._skip -= step
        return not self._skip

    def _is_unread(self, version: int, kind: int, length: int, xid: int) -> bool:
        """Returns whether a message is dropped unread, by its header alone. Raises RefusedError."""
        if self._phase is _Phase.HELLO and kind not in {ofp.OFPT_HELLO, ofp.OFPT_ERROR}:
            raise RefusedError(f"it begins with {_name(kind)} of version {version}, and not with an OpenFlow hello")
        if length < _HEADER_SIZE:
            raise RefusedError(f"its {_name(kind)} message has a length of {length}; at least {_HEADER_SIZE} is right")
        if self._phase is not _Phase.HELLO and version != ofp.OFP_VERSION:
            raise RefusedError(f"its {_name(kind)} message is of version {version}; {ofp.OFP_VERSION} was agreed on")
        if kind == ofp.OFPT_PACKET_IN:
            return self._phase is not _Phase.READY or not self._packet_ins or length > MAX_PACKET_IN
        if self._is_dropped(kind, xid):
            return True
        wanted = _SIZES.get(kind)
        if wanted is not None and length != wanted:
            raise RefusedError(f"its {_name(kind)} message has a length of {length}; {wanted} is right")
        if self._phase < _Phase.READY and kind != ofp.OFPT_MULTIPART_REPLY and length > MAX_EARLY:
            raise RefusedError(f"its {_name(kind)} message has {length} bytes before it is known as a switch")
        return False

    def _is_dropped(self, kind: int, xid: int) -> bool:
        """Returns whether such a message is not needed now. Raises RefusedError."""
        if kind in _EVENTS:
            # Changes before the peer is ready are contained in the answers to later requests.
            return self._phase is not _Phase.READY
        if kind == ofp.OFPT_EXPERIMENTER:
            return xid not in self._requests
        if kind in _ANSWERS:
            request = self._requests.get(xid)
            if request is not None and request.answer != kind:
                raise RefusedError(f"its {_name(kind)} message answers a request of another type")
            return request is None
        if kind == ofp.OFPT_HELLO and self._phase is not _Phase.HELLO:
            raise RefusedError("it says hello twice")
        if kind not in {ofp.OFPT_HELLO, ofp.OFPT_ERROR, ofp.OFPT_ECHO_REQUEST}:
            raise RefusedError(f"it sends {_name(kind)}, which no switch sends here")
        return False

    # Whole messages: each is checked, and handed on as it is, in pieces, or not at all.

    def _read(self, kind: int, xid: int, message: bytes) -> bytes:
        """Check one message and queue its pieces.

        Returns the reply to the peer. Raises RefusedError or MalformedError.
        """
        match kind:
            case ofp.OFPT_ECHO_REQUEST:
                return _HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_ECHO_REPLY, len(message), xid) + message[_HEADER_SIZE:]
            case ofp.OFPT_PACKET_IN:
                return self._read_packet(message)
            case ofp.OFPT_HELLO:
                self._read_hello(message, xid)
            case ofp.OFPT_ERROR:
                self._read_error(message, xid)
            case ofp.OFPT_MULTIPART_REPLY:
                self._read_parts(message, xid)
            case ofp.OFPT_PORT_STATUS:
                self._read_port_status(message)
            case ofp.OFPT_FLOW_REMOVED:
                _check_flow_removed(message)
                self._pieces.append(message)
            case ofp.OFPT_EXPERIMENTER:
                self._read_bundle_control(message, xid)
            case ofp.OFPT_FEATURES_REPLY:
                self._read_features(message, xid)
            case _:
                del self._requests[xid]
                self._pieces.append(message)
        return b""

    def _read_hello(self, message: bytes, xid: int) -> None:
        version = message[0]
        offered = shapes.offered_versions(message, _HEADER_SIZE)
        speaks = version >= ofp.OFP_VERSION if offered is None else ofp.OFP_VERSION in offered
        if not speaks:
            known = sorted(offered or {version})
            names = ", ".join(_VERSIONS.get(number, f"of wire version {number}") for number in known)
            reason = f"it speaks OpenFlow {names}, and the controller 1.3; allow OpenFlow 1.3 at the switch"
            raise RefusedError(reason, _hello_failed(xid))
        self._phase = _Phase.FEATURES
        self._pieces.append(_HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_HELLO, _HEADER_SIZE, xid))

    def _read_error(self, message: bytes, xid: int) -> None:
        if len(message) < 12:
            raise shapes.MalformedError(_HEADER_SIZE, f"an error of {len(message) - 8} bytes; at least 4 are right")
        kind, code = _PAIR.unpack_from(message, _HEADER_SIZE)
        if kind == ofp.OFPET_EXPERIMENTER and len(message) < 16:
            raise shapes.MalformedError(_HEADER_SIZE, "half an error of an extension")
        if self._phase is _Phase.HELLO:
            text = message[12:].decode("ascii", "replace").rstrip("\0")
            raise RefusedError(f"it refuses the hello with error {kind}, code {code}: {text!r}")
        self._requests.pop(xid, None)
        cut = message[:MAX_ERROR]
        self._pieces.append(_HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_ERROR, len(cut), xid) + cut[_HEADER_SIZE:])

    def _read_packet(self, message: bytes) -> bytes:
        """Hand on a packet that announces a host, and no other. Returns the reply after the last one that is read."""
        self._packet_ins -= 1
        with contextlib.suppress(shapes.MalformedError):  # it is one of many packets, and not needed
            at = shapes.check_match(message, _PACKET_IN_MATCH, len(message)) + _PACKET_IN_PADDING
            if announcement.parse(message[at:]) is not None:
                self._pieces.append(message)
        return b"" if self._packet_ins else _NO_PACKETS

    def _read_features(self, message: bytes, xid: int) -> None:
        if message[21]:
            raise RefusedError("it opens an auxiliary connection; only main connections are accepted")
        del self._requests[xid]
        self._phase = _Phase.PORTS
        self._pieces.append(message)

    def _read_port_status(self, message: bytes) -> None:
        reason, number = message[8], int.from_bytes(message[16:20], "big")
        if reason == ofp.OFPPR_DELETE:
            self._ports.discard(number)
        elif reason in {ofp.OFPPR_ADD, ofp.OFPPR_MODIFY}:
            self._see_ports([number])
        else:
            raise shapes.MalformedError(_HEADER_SIZE, f"the reason {reason}; 0 to 2 are right")
        self._pieces.append(message)

    def _see_ports(self, numbers: list[int]) -> None:
        self._ports.update(numbers)
        if len(self._ports) > MAX_PORTS:
            raise RefusedError(f"it has more than {MAX_PORTS} ports")

    def _read_bundle_control(self, message: bytes, xid: int) -> None:
        request = self._requests[xid]
        if request.answer != ofp.OFPT_EXPERIMENTER or not _is_bundle_control(message):
            raise RefusedError("its EXPERIMENTER message answers a request of another type")
        shapes.check_properties(message, _BUNDLE_SIZE)
        del self._requests[xid]
        self._pieces.append(message)

    def _read_parts(self, message: bytes, xid: int) -> None:
        if len(message) < _PARTS_SIZE:
            raise shapes.MalformedError(_HEADER_SIZE, f"half the header of an answer, {len(message) - 8} bytes")
        part, flags = _PAIR.unpack_from(message, _HEADER_SIZE)
        request = self._requests[xid]
        if part != request.part:
            raise RefusedError(f"its MULTIPART_REPLY of type {part} answers a request of type {request.part}")
        if flags & ~ofp.OFPMPF_REPLY_MORE:
            raise shapes.MalformedError(_HEADER_SIZE + 2, f"the flags {flags:#06x}; 0 or 1 are right")
        request.size += max(len(message), _PART)
        most = MAX_COUNTERS_ANSWER if part in _COUNTERS else MAX_ANSWER
        if request.size > most:
            raise RefusedError(f"its answer to one request has more than {most} bytes")
        message, cuts = self._checked_parts(part, message)
        if not flags:
            del self._requests[xid]
            if part == ofp.OFPMP_PORT_DESC and self._phase is _Phase.PORTS:
                self._phase = _Phase.READY
        self._pieces.extend(_pieces(message, cuts, part, flags, xid))

    def _checked_parts(self, part: int, message: bytes) -> tuple[bytes, list[int]]:
        """Returns a part of an answer as Ryu may read it, and the offsets where it may be cut."""
        match part:
            case ofp.OFPMP_FLOW:
                cuts, vendors = shapes.check_flow_stats(message, _PARTS_SIZE)
                return (shapes.without_vendors(message, vendors) if vendors else message), cuts
            case ofp.OFPMP_QUEUE:
                return message, shapes.check_queue_stats(message, _PARTS_SIZE)
            case ofp.OFPMP_PORT_STATS:
                return message, shapes.check_port_stats(message, _PARTS_SIZE)
            case ofp.OFPMP_METER_CONFIG:
                return message, shapes.check_meters(message, _PARTS_SIZE)
            case ofp.OFPMP_PORT_DESC:
                cuts = shapes.check_ports(message, _PARTS_SIZE)
                self._see_ports(shapes.port_numbers(message, _PARTS_SIZE))
                return message, cuts
            case ofp.OFPMP_AGGREGATE:
                shapes.check_aggregate(message, _PARTS_SIZE)
                return message, []
        raise RefusedError(f"it sends MULTIPART_REPLY of type {part}, which was not requested")


def _pieces(message: bytes, cuts: list[int], part: int, flags: int, xid: int) -> list[bytes]:
    """Returns a part of an answer as several consecutive parts, cut at the offsets ``cuts``."""
    if not cuts:
        return [message]
    edges = [_PARTS_SIZE, *cuts, len(message)]
    pieces = []
    for begin, end in pairwise(edges):
        more = flags if end == len(message) else ofp.OFPMPF_REPLY_MORE
        header = _HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_MULTIPART_REPLY, _PARTS_SIZE + end - begin, xid)
        pieces.append(header + _PAIR.pack(part, more) + bytes(4) + message[begin:end])
    return pieces


def _check_flow_removed(message: bytes) -> None:
    if len(message) < shapes.MATCH_AT_REMOVED:
        raise shapes.MalformedError(_HEADER_SIZE, f"half a rule, {len(message) - _HEADER_SIZE} bytes")
    after = shapes.check_match(message, shapes.MATCH_AT_REMOVED, len(message))
    if after != len(message):
        raise shapes.MalformedError(after, f"a rest of {len(message) - after} bytes")


def _is_bundle_control(message: bytes | bytearray) -> bool:
    if len(message) < _BUNDLE_SIZE:
        return False
    vendor, kind = _LONGS.unpack_from(message, _HEADER_SIZE)
    return (vendor, kind) == _BUNDLE_CONTROL


def _hello_failed(xid: int) -> bytes:
    text = b"this controller speaks OpenFlow 1.3 alone"
    body = _PAIR.pack(ofp.OFPET_HELLO_FAILED, ofp.OFPHFC_INCOMPATIBLE) + text
    return _HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_ERROR, _HEADER_SIZE + len(body), xid) + body


def _name(kind: int) -> str:
    return _NAMES.get(kind, f"type {kind}")

"""What a rule matches and what it does, as the bytes of OpenFlow. Pure.

Ryu makes an object of each field and each action, and bytes of those. That takes more than ten times as long, and was
the largest part of a plan's processor time. Source: OpenFlow Switch Specification 1.3.5, sections 7.2.3 to 7.2.5.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from controller.dataplane.queues.numbers import QueueNumbers, queue_of
from controller.rules.rule import (
    Action,
    Match,
    Metered,
    Normal,
    Output,
    SetClass,
    SetDscp,
    SetMetadata,
    Table,
    ToController,
)

PACKET_BYTES = 512
"""Have switches send so many bytes of a packet that is for the controller."""
_REMEMBERED = 4096
_ALIGNMENT = 8
_BASIC_CLASS = ofp.OFPXMC_OPENFLOW_BASIC << 16
_IP_DSCP = 8

_BYTE, _SHORT, _LONG, _TWO_LONGS = Struct("!B"), Struct("!H"), Struct("!I"), Struct("!Q")
_PAIR = Struct("!HH")
_METER = Struct("!HHI")
_GOTO = Struct("!HHB3x")
_WRITE_METADATA = Struct("!HH4xQQ")
_ACTIONS = Struct("!HH4x")
_SET_QUEUE = Struct("!HHI")
_OUTPUT = Struct("!HHIH6x")
_SET_FIELD = Struct("!HHIB7x")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _ipv4(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET, text)


def _ipv6(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, text)


_FIELDS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "in_port": (0, _LONG.pack),
    "metadata": (2, _TWO_LONGS.pack),
    "eth_dst": (3, _mac),
    "eth_src": (4, _mac),
    "eth_type": (5, _SHORT.pack),
    "ip_dscp": (_IP_DSCP, _BYTE.pack),
    "ip_proto": (10, _BYTE.pack),
    "ipv4_src": (11, _ipv4),
    "ipv4_dst": (12, _ipv4),
    "tcp_src": (13, _SHORT.pack),
    "tcp_dst": (14, _SHORT.pack),
    "udp_src": (15, _SHORT.pack),
    "udp_dst": (16, _SHORT.pack),
    "icmpv4_type": (19, _BYTE.pack),
    "arp_tpa": (23, _ipv4),
    "ipv6_src": (26, _ipv6),
    "ipv6_dst": (27, _ipv6),
    "icmpv6_type": (29, _BYTE.pack),
    "icmpv6_code": (30, _BYTE.pack),
    "ipv6_nd_target": (31, _ipv6),
}
"""The number of each field (7.2.3.7), and what makes bytes of its value. A field stands behind those that it needs."""

_IN_ORDER = tuple((Match._fields.index(name), number, pack) for name, (number, pack) in _FIELDS.items())


@lru_cache(maxsize=_REMEMBERED)
def encoded_match(match: Match) -> bytes:
    """Returns a match as it stands in a message, filled up to whole groups of 8 bytes."""
    fields = b"".join(
        _field(number, pack, value) for index, number, pack in _IN_ORDER if (value := match[index]) is not None
    )
    length = _PAIR.size + len(fields)
    return _PAIR.pack(ofp.OFPMT_OXM, length) + fields + bytes(-length % _ALIGNMENT)


@lru_cache(maxsize=_REMEMBERED)
def encoded_instructions(actions: tuple[Action, ...], goto: Table | None, numbers: QueueNumbers) -> bytes:
    """Returns what a rule does as it stands in a message. ``numbers`` are the classes' queues."""
    return b"".join(_instructions(actions, goto, numbers))


def _field(number: int, pack: Callable[[Any], bytes], value: Any) -> bytes:
    if not isinstance(value, tuple):
        packed = pack(value)
        return _LONG.pack(_BASIC_CLASS | number << 9 | len(packed)) + packed
    of_value, mask = map(pack, value)
    # What the mask leaves out must be 0 in the value (7.2.3.5).
    of_value = bytes(byte & wanted for byte, wanted in zip(of_value, mask, strict=True))
    return _LONG.pack(_BASIC_CLASS | number << 9 | 1 << 8 | 2 * len(mask)) + of_value + mask


def _instructions(actions: tuple[Action, ...], goto: Table | None, numbers: QueueNumbers) -> Iterator[bytes]:
    for action in actions:
        if isinstance(action, Metered):
            yield _METER.pack(ofp.OFPIT_METER, _METER.size, action.meter)
    applied = b"".join(_action(each, numbers) for each in actions if not isinstance(each, SetMetadata | Metered))
    if applied:
        yield _ACTIONS.pack(ofp.OFPIT_APPLY_ACTIONS, _ACTIONS.size + len(applied)) + applied
    for action in actions:
        if isinstance(action, SetMetadata):
            yield _WRITE_METADATA.pack(ofp.OFPIT_WRITE_METADATA, _WRITE_METADATA.size, action.value, action.mask)
    if goto is not None:
        yield _GOTO.pack(ofp.OFPIT_GOTO_TABLE, _GOTO.size, goto)


def _action(action: Action, numbers: QueueNumbers) -> bytes:
    match action:
        case SetClass(service_class):
            return _SET_QUEUE.pack(ofp.OFPAT_SET_QUEUE, _SET_QUEUE.size, queue_of(service_class, numbers))
        case SetDscp(dscp):
            header = _BASIC_CLASS | _IP_DSCP << 9 | _BYTE.size
            return _SET_FIELD.pack(ofp.OFPAT_SET_FIELD, _SET_FIELD.size, header, dscp)
        case Output(port):
            return _output(port)
        case Normal():
            return _output(ofp.OFPP_NORMAL)
        case ToController():
            return _output(ofp.OFPP_CONTROLLER, PACKET_BYTES)
        case SetMetadata() | Metered():
            raise ValueError(f"{action} is an instruction, and no action")


def _output(port: int, most: int = ofp.OFPCML_MAX) -> bytes:
    return _OUTPUT.pack(ofp.OFPAT_OUTPUT, _OUTPUT.size, port, most)

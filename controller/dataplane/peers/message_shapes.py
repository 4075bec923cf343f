"""Checks the nested structures of OpenFlow 1.3 messages before Ryu's parser reads them. Pure.

Ryu adds the lengths in a message to an offset and trusts them: a length of 0 makes it loop for ever, and a wrong length
makes it raise. A message that passes the checks has only lengths that fit exactly and types that Ryu knows. Offsets in
errors count from the beginning of the message.

Source: OpenFlow Switch Specification 1.3.5, sections 7.2 and 7.3. The known types are taken from Ryu's own tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from ryu.ofproto import ofproto_common
from ryu.ofproto import ofproto_v1_3 as ofp

MAX_MATCH = 2048
"""Limits the length of a match, in bytes. All fields of OpenFlow 1.3 together, with masks, take about 500."""
MAX_RULE = 8192
"""Limits the length of an entry of flow statistics, in bytes: about 500 actions."""
MOST_CHECKED = 16384
"""Remember so many entries of flow statistics that passed the checks. One takes about 200 bytes."""
PIECE = 4096
"""A message is cut into pieces of about so many bytes. Ryu reads each in a few milliseconds."""

MATCH_AT_REMOVED = 48
"""The offset of the match in a flow-removed message."""
_AGE_AT_STATS, _PRIORITY_AT_STATS, _COUNTERS_AT_STATS, _MATCH_AT_STATS = 4, 12, 32, 48
_PORT_SIZE = 64
_QUEUE_SIZE = 40
_PORT_COUNTERS_SIZE = 112
_AGGREGATE_SIZE = 24
_METER_HEAD = 8
_BAND_SIZE = 16
_BAND_KINDS = frozenset({ofp.OFPMBT_DROP, ofp.OFPMBT_DSCP_REMARK, ofp.OFPMBT_EXPERIMENTER})
_EXPERIMENTER_CLASS = 0xFFFF

_SHORT = Struct("!H")
_PAIR = Struct("!HH")
_LONG = Struct("!I")


class MalformedError(Exception):
    """A structure that violates OpenFlow. The message names the fault and its offset."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(f"at offset {offset} there is {problem}")


def _wrong_length(what: str, length: int, least: int, most: int) -> str:
    return f"{what} of {length} bytes; at least {least} are needed, and {most} are left"


def _headers(fields: Iterable[object]) -> tuple[dict[int, int], dict[tuple[int, int], int], frozenset[int]]:
    """Returns Ryu's match fields: lengths by 32-bit header, the same of extended fields, and class with number."""
    plain: dict[int, int] = {}
    extended: dict[tuple[int, int], int] = {}
    for field in fields:
        number, size = field.num, field.type.size  # type: ignore[attr-defined]  # Ryu has no types
        for mask in (0, 1):
            length = size * (1 + mask)
            if isinstance(number, tuple):
                vendor, kind = number
                if kind >> 7 == _EXPERIMENTER_CLASS:
                    extended[kind << 9 | mask << 8 | length + 4, vendor] = length + 4
            else:
                plain[number << 9 | mask << 8 | length] = length
    return plain, extended, frozenset(header >> 9 for header in plain)


_PLAIN, _EXTENDED, _KNOWN = _headers(ofp.oxm_types)

_ACTION_SIZES = {
    ofp.OFPAT_OUTPUT: 16,
    ofp.OFPAT_COPY_TTL_OUT: 8,
    ofp.OFPAT_COPY_TTL_IN: 8,
    ofp.OFPAT_SET_MPLS_TTL: 8,
    ofp.OFPAT_DEC_MPLS_TTL: 8,
    ofp.OFPAT_PUSH_VLAN: 8,
    ofp.OFPAT_POP_VLAN: 8,
    ofp.OFPAT_PUSH_MPLS: 8,
    ofp.OFPAT_POP_MPLS: 8,
    ofp.OFPAT_SET_QUEUE: 8,
    ofp.OFPAT_GROUP: 8,
    ofp.OFPAT_SET_NW_TTL: 8,
    ofp.OFPAT_DEC_NW_TTL: 8,
    ofp.OFPAT_PUSH_PBB: 8,
    ofp.OFPAT_POP_PBB: 8,
}
_INSTRUCTION_SIZES = {ofp.OFPIT_GOTO_TABLE: 8, ofp.OFPIT_WRITE_METADATA: 24, ofp.OFPIT_METER: 8}
_WITH_ACTIONS = frozenset({ofp.OFPIT_WRITE_ACTIONS, ofp.OFPIT_APPLY_ACTIONS, ofp.OFPIT_CLEAR_ACTIONS})


def check_match(data: bytes, at: int, end: int) -> int:
    """Check the match at ``at``, which may reach to ``end``. Returns the offset after it. Raises MalformedError."""
    if end - at < 8:
        raise MalformedError(at, "no room for a match")
    kind, length = _PAIR.unpack_from(data, at)
    if kind != ofp.OFPMT_OXM:
        raise MalformedError(at, f"a match of type {kind}; 1 is right")
    after: int = at + (length + 7 & ~7)
    if length < 4 or after > end:
        raise MalformedError(at, _wrong_length("a match", length, 4, end - at))
    if length > MAX_MATCH:
        raise MalformedError(at, f"a match of {length} bytes, which is more than {MAX_MATCH}")
    offset, stop = at + 4, at + length
    while offset < stop:
        offset = _after_field(data, offset, stop)
    return after


def _after_field(data: bytes, at: int, end: int) -> int:
    """Returns the offset after the match field at ``at``. Raises MalformedError."""
    if end - at < 4:
        raise MalformedError(at, "half a match field")
    (header,) = _LONG.unpack_from(data, at)
    length = _PLAIN.get(header)
    if length is None:
        length = _other_field(data, at, end, header)
    after = at + 4 + length
    if after > end:
        raise MalformedError(at, f"a match field of {length} bytes where {end - at - 4} are left")
    return after


def _other_field(data: bytes, at: int, end: int, header: int) -> int:
    length = header & 0xFF
    is_masked = header >> 8 & 1
    name = f"match field {header >> 9 & 0x7F} of class {header >> 16:#06x}"
    if header >> 16 == _EXPERIMENTER_CLASS:
        vendor = _LONG.unpack_from(data, at + 4)[0] if end - at >= 8 else None
        if vendor is None or (header, vendor) not in _EXTENDED:
            raise MalformedError(at, f"{name} with length {length}, which is not known")
    elif header >> 9 in _KNOWN:
        raise MalformedError(at, f"{name} with length {length}, which is not its length")
    elif length == 0 or (is_masked and length % 2):
        raise MalformedError(at, f"{name} with length {length}")
    return length


def _check_actions(data: bytes, at: int, end: int, vendors: list[int]) -> None:
    while at < end:
        if end - at < 8:
            raise MalformedError(at, "half an action")
        kind, length = _PAIR.unpack_from(data, at)
        if length < 8 or at + length > end:
            raise MalformedError(at, _wrong_length("an action", length, 8, end - at))
        if kind == ofp.OFPAT_SET_FIELD:
            _check_set_field(data, at, length)
        elif kind == ofp.OFPAT_EXPERIMENTER:
            vendors.append(at + 4)
        elif _ACTION_SIZES.get(kind) != length:
            raise MalformedError(at, f"an action of type {kind} and {length} bytes, which OpenFlow does not know")
        at += length


def _check_set_field(data: bytes, at: int, length: int) -> None:
    _after_field(data, at + 4, at + length)
    if data[at + 6] & 1:
        raise MalformedError(at, "a set-field action with a mask")


def _check_instructions(data: bytes, at: int, end: int, vendors: list[int]) -> None:
    while at < end:
        if end - at < 8:
            raise MalformedError(at, "half an instruction")
        kind, length = _PAIR.unpack_from(data, at)
        if length < 8 or at + length > end:
            raise MalformedError(at, _wrong_length("an instruction", length, 8, end - at))
        if kind in _WITH_ACTIONS:
            _check_actions(data, at + 8, at + length, vendors)
        elif _INSTRUCTION_SIZES.get(kind) != length:
            raise MalformedError(at, f"an instruction of type {kind} and {length} bytes, which OpenFlow does not know")
        at += length


_checked: set[bytes] = set()


def without_counters(data: bytes, at: int) -> bytes:
    """Returns what the entry of flow statistics at ``at`` says of its rule: all but the counters and the rule's age."""
    (length,) = _SHORT.unpack_from(data, at)
    rule, match = data[at + _PRIORITY_AT_STATS : at + _COUNTERS_AT_STATS], data[at + _MATCH_AT_STATS : at + length]
    return bytes(data[at : at + _AGE_AT_STATS] + rule + match)


def check_flow_stats(data: bytes, at: int) -> tuple[list[int], list[int]]:
    """Check the entries of flow statistics from ``at`` to the end. Raises MalformedError.

    Returns the offsets where the message may be cut into pieces, and those of the vendor numbers of
    experimenter actions.
    """
    end = len(data)
    cuts: list[int] = []
    vendors: list[int] = []
    last = at
    while at < end:
        if end - at < _MATCH_AT_STATS:
            raise MalformedError(at, "half a rule")
        (length,) = _SHORT.unpack_from(data, at)
        after = at + length
        if length < _MATCH_AT_STATS or after > end:
            raise MalformedError(at, _wrong_length("a rule", length, _MATCH_AT_STATS + 8, end - at))
        if length > MAX_RULE:
            raise MalformedError(at, f"a rule of {length} bytes, which is more than {MAX_RULE}")
        _check_entry(data, at, after, vendors)
        if after - last > PIECE:
            if at > last:
                cuts.append(at)
            last = at
        at = after
    return cuts, vendors


def _check_entry(data: bytes, at: int, after: int, vendors: list[int]) -> None:
    """Check an entry of flow statistics, unless an equal one was right."""
    entry = without_counters(data, at)
    if entry in _checked:
        return
    known = len(vendors)
    _check_instructions(data, check_match(data, at + _MATCH_AT_STATS, after), after, vendors)
    # The places of vendor numbers are told for each message.
    if len(vendors) == known:
        if len(_checked) >= MOST_CHECKED:
            _checked.clear()
        _checked.add(entry)


def _check_records(data: bytes, at: int, size: int, what: str) -> list[int]:
    left = len(data) - at
    if left % size:
        raise MalformedError(at, f"{what} of {left} bytes, which is no multiple of {size}")
    step = PIECE // size * size
    return list(range(at + step, len(data), step))


def check_queue_stats(data: bytes, at: int) -> list[int]:
    """Check queue statistics. Returns the offsets where the message may be cut. Raises MalformedError."""
    return _check_records(data, at, _QUEUE_SIZE, "a list of queues")


def check_port_stats(data: bytes, at: int) -> list[int]:
    """Check the counters of ports. Returns the offsets where the message may be cut. Raises MalformedError."""
    return _check_records(data, at, _PORT_COUNTERS_SIZE, "a list of the counters of ports")


def check_ports(data: bytes, at: int) -> list[int]:
    """Check port descriptions. Returns the offsets where the message may be cut. Raises MalformedError."""
    return _check_records(data, at, _PORT_SIZE, "a list of ports")


def port_numbers(data: bytes, at: int) -> list[int]:
    """Returns the port numbers in checked port descriptions."""
    return [_LONG.unpack_from(data, offset)[0] for offset in range(at, len(data), _PORT_SIZE)]


def check_meters(data: bytes, at: int) -> list[int]:
    """Check meter configurations from ``at`` to the end. Returns the offsets where the message may be cut.

    Raises MalformedError.
    """
    end = len(data)
    cuts: list[int] = []
    last = at
    while at < end:
        if end - at < _METER_HEAD:
            raise MalformedError(at, "half a meter")
        (length,) = _SHORT.unpack_from(data, at)
        if length < _METER_HEAD or at + length > end:
            raise MalformedError(at, _wrong_length("a meter", length, _METER_HEAD, end - at))
        if (length - _METER_HEAD) % _BAND_SIZE:
            raise MalformedError(at, f"a meter of {length} bytes; a band has {_BAND_SIZE}")
        for band in range(at + _METER_HEAD, at + length, _BAND_SIZE):
            kind, size = _PAIR.unpack_from(data, band)
            if kind not in _BAND_KINDS or size != _BAND_SIZE:
                raise MalformedError(band, f"a band of type {kind} and {size} bytes, which OpenFlow does not know")
        at += length
        if at - last > PIECE and at < end:
            cuts.append(at)
            last = at
    return cuts


def check_aggregate(data: bytes, at: int) -> None:
    """Check aggregate statistics. Raises MalformedError."""
    if len(data) - at != _AGGREGATE_SIZE:
        raise MalformedError(at, f"a body of {len(data) - at} bytes; {_AGGREGATE_SIZE} are right")


def check_properties(data: bytes, at: int) -> None:
    """Check a list of properties, each of which is padded to 8 bytes, up to the end. Raises MalformedError."""
    end = len(data)
    while at < end:
        if end - at < 4:
            raise MalformedError(at, "half a property")
        (length,) = _SHORT.unpack_from(data, at + 2)
        if length < 4 or at + length > end:
            raise MalformedError(at, _wrong_length("a property", length, 4, end - at))
        at += length + 7 & ~7


def offered_versions(data: bytes, at: int) -> frozenset[int] | None:
    """Returns the versions in the elements of a hello, or None if it has no list of them. Raises MalformedError."""
    versions: set[int] | None = None
    end = len(data)
    while at < end:
        if end - at < 4:
            raise MalformedError(at, "half a hello element")
        kind, length = _PAIR.unpack_from(data, at)
        if length < 4 or at + length > end:
            raise MalformedError(at, _wrong_length("a hello element", length, 4, end - at))
        if kind == ofp.OFPHET_VERSIONBITMAP and length >= 8:
            bits = int.from_bytes(data[at + 4 : at + 8], "big")
            versions = (versions or set()) | {version for version in range(32) if bits >> version & 1}
        at += length + 7 & ~7
    return None if versions is None else frozenset(versions)


def without_vendors(data: bytes, at: Iterable[int]) -> bytes:
    """Returns ``data`` with the vendor number 0 in place of Nicira's at the offsets ``at``.

    Ryu has thirty parsers for Nicira's actions, none of which checks a length. No rule of this controller has such an
    action, so they are handed on as an unknown extension.
    """
    changed = bytearray(data)
    for offset in at:
        if _LONG.unpack_from(data, offset)[0] == ofproto_common.NX_EXPERIMENTER_ID:
            _LONG.pack_into(changed, offset, 0)
    return bytes(changed)

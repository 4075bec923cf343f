"""TensorBoard's event files: records with checksums (TFRecord), each an Event message. Pure: bytes in, scalars out.

A record is its length (8 bytes), a checksum of that, the data, a checksum of the data; the checksums are CRC-32C,
masked. Of the message only what a scalar needs is read, straight from protobuf's wire format. What was damaged is
passed over: the next place whose length has the right checksum is the next record.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAX_RECORD_BYTES = 64 * 1024
"""A scalar's record has a hundred bytes. Longer ones (images, histograms, graphs) are passed over, unread."""

PLACES = 2000
"""After a damaged record, look at so many positions in one go for the next one; that takes some milliseconds."""

MOST_BYTES = 2**31
"""A longer record is damaged, since protobuf allows none."""

_HEADER, _FOOTER = 12, 4
_ZEROS = bytes(_HEADER)
_NO_ZERO = re.compile(rb"[^\0]")
_MASK_DELTA = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Fields of tensorflow/core/util/event.proto and of what it holds.
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = 1
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT = 1, 4
_TYPES = {1: "f", 2: "d", 3: "i", 9: "q"}
"""TensorFlow's numbers of the types float, double, int32 and int64, as struct names them."""
_LISTS = {5: "f", 6: "d"}
"""Fields of a tensor that list its values as such."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of a tag at a step, and when it was written (seconds since the epoch)."""

    tag: str
    step: int
    time: float
    value: float


class Records:
    """Cuts a stream of bytes into records, however it was split. ``damaged`` counts places that were passed over."""

    def __init__(self) -> None:
        self.damaged = 0
        self._rest = b""
        self._skip = 0
        self._is_lost = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The data of the whole records that ``data`` completes, but for those longer than MAX_RECORD_BYTES.

        Now and then an empty one comes, where a lot of what is damaged was passed over: who reads may rest then.
        """
        buffer, self._rest = self._rest + data, b""
        offset = lost = 0
        while True:
            if self._skip:
                step = min(self._skip, len(buffer) - offset)
                offset, self._skip = offset + step, self._skip - step
            if len(buffer) - offset < _HEADER:
                break
            length = _length(buffer, offset)
            if length is None:
                lost += 1
                if lost % PLACES == 0:
                    yield b""
                self._lose()
                offset = _next_offset(buffer, offset + 1)
                continue
            end = offset + _HEADER + length
            if length > MAX_RECORD_BYTES:
                self._is_lost, self._skip, offset = False, length + _FOOTER, offset + _HEADER
                continue
            if len(buffer) < end + _FOOTER:
                break
            body = buffer[offset + _HEADER : end]
            if _masked(body) == int.from_bytes(buffer[end : end + _FOOTER], "little"):
                self._is_lost = False
                yield body
            else:
                self._lose()
                yield b""
            offset = end + _FOOTER
        self._rest = buffer[offset:]

    def _lose(self) -> None:
        self.damaged += not self._is_lost
        self._is_lost = True


def scalars(record: bytes) -> list[Scalar]:
    """The scalars of an Event. Raises ValueError for what is none."""
    time, step = 0.0, 0
    values: list[tuple[str, float]] = []
    for field, kind, content in _fields(record):
        if field == _WALL_TIME and kind == _FIXED64:
            time = float(struct.unpack("<d", _as_bytes(content))[0])
        elif field == _STEP and kind == _VARINT:
            step = _signed(content)
        elif field == _SUMMARY and kind == _BYTES:
            values += _summary(_as_bytes(content))
    return [Scalar(tag, step, time, value) for tag, value in values]


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum of RFC 3720."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        row = byte
        for _ in range(8):
            row = row >> 1 ^ (0x82F63B78 if row & 1 else 0)
        rows.append(row)
    return tuple(rows)


_TABLE = _table()


def _length(buffer: bytes, offset: int) -> int | None:
    """The length of the record at ``place``; None: there is none, or its beginning is damaged."""
    length, crc = struct.unpack_from("<QI", buffer, offset)
    if length > MOST_BYTES or _masked(buffer[offset : offset + 8]) != crc:
        return None
    return int(length)


def _next_offset(buffer: bytes, offset: int) -> int:
    """Where the next record may begin: the upper bytes of a length are zeros, but no record begins with zeros alone."""
    if buffer.startswith(_ZEROS, offset):
        match = _NO_ZERO.search(buffer, offset)
        return (match.start() if match is not None else len(buffer)) - len(_ZEROS) + 1
    upper = buffer.find(b"\0\0\0\0", offset + 4)
    # The last bytes may be the beginning of one.
    return max(offset, len(buffer) - _HEADER + 1 if upper < 0 else upper - 4)


# Protobuf ------------------------------------------------------------------------------------------------------------


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and content of each field. Raises ValueError."""
    offset = 0
    while offset < len(message):
        key, offset = _varint(message, offset)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            number, offset = _varint(message, offset)
            yield field, kind, number
            continue
        if kind == _BYTES:
            length, offset = _varint(message, offset)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if offset + length > len(message):
            raise ValueError("a field that is longer than its message")
        yield field, kind, message[offset : offset + length]
        offset += length


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    number = 0
    for count, byte in enumerate(message[offset : offset + 10]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, offset + count + 1
    raise ValueError("a number without end")


def _as_bytes(content: int | bytes) -> bytes:
    assert isinstance(content, bytes)
    return content


def _signed(content: int | bytes) -> int:
    assert isinstance(content, int)
    return content - 2**64 if content >= 2**63 else content


def _summary(message: bytes) -> Iterator[tuple[str, float]]:
    for field, kind, content in _fields(message):
        if field == _VALUE and kind == _BYTES:
            pair = _value(_as_bytes(content))
            if pair is not None:
                yield pair


def _value(message: bytes) -> tuple[str, float] | None:
    """Tag and value; None: it is no scalar."""
    tag: str | None = None
    value: float | None = None
    for field, kind, content in _fields(message):
        if field == _TAG and kind == _BYTES:
            tag = _as_bytes(content).decode(errors="replace")
        elif field == _SIMPLE_VALUE and kind == _FIXED32:
            value = float(struct.unpack("<f", _as_bytes(content))[0])
        elif field == _TENSOR and kind == _BYTES:
            value = _tensor(_as_bytes(content))
    return (tag, value) if tag is not None and value is not None else None


def _tensor(message: bytes) -> float | None:
    """The one element of a tensor; None: it has another number of them, or they are no plain numbers."""
    dtype, data = 0, b""
    listed: list[tuple[str, bytes]] = []
    for field, kind, content in _fields(message):
        if field == _DTYPE and kind == _VARINT:
            dtype = _signed(content)
        elif field == _CONTENT and kind == _BYTES:
            data = _as_bytes(content)
        elif field in _LISTS and kind in (_BYTES, _FIXED32, _FIXED64):
            listed.append((_LISTS[field], _as_bytes(content)))
    if not listed and dtype in _TYPES:
        listed = [(_TYPES[dtype], data)]
    if len(listed) != 1 or len(listed[0][1]) != struct.calcsize("<" + listed[0][0]):
        return None
    letter, content_bytes = listed[0]
    return float(struct.unpack("<" + letter, content_bytes)[0])

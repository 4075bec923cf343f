"""From the bytes of a file that people give to its text: UTF-8, perhaps gzipped. Whatever else it is, is named.

Pure: bytes in, text out. ``text_file`` reads the bytes. All readers of people's files go through here, so that a byte
order mark or a gzipped file is taken, or refused, by all of them alike. Only the standard library is needed.
"""

from __future__ import annotations

import re
import zlib

GZIP = b"\x1f\x8b"
_OTHER_PACKERS = {
    b"PK\x03\x04": ("a zip archive", "unzip"),
    b"BZh": ("compressed by bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("compressed by xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unzstd"),
}
_MARKS = {
    # UTF-32's little-endian mark begins as UTF-16's does, so it is looked for first.
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_TAR_AT, _TAR = 257, b"ustar"
_LONE_RETURN = re.compile(r"\r(?!\n|\Z)")
_HEAD = 64


class PlainTextError(ValueError):
    """Bytes that are no text for us. The message says what they are and what would be right, in one sentence.

    ``line`` is where, counted from 1, if the bytes have lines.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def decode(raw: bytes, *, most_bytes: int) -> str:
    """The text of a file, without a byte order mark; its lines end with LF or CRLF, as in the file.

    ``most_bytes`` bounds the file and, where it is gzipped, also what it unpacks to. Raises PlainTextError.
    """
    if len(raw) > most_bytes:
        raise PlainTextError(f"is larger than {most_bytes} bytes")
    if raw.startswith(GZIP):
        raw = _unpacked(raw, most_bytes)
        if raw.startswith(GZIP):
            raise PlainTextError("is gzipped twice; unpack it once (gunzip)")
    for magic, (what, tool) in _OTHER_PACKERS.items():
        if raw.startswith(magic):
            raise PlainTextError(f"is {what}; unpack it first ({tool}), for only gzip is unpacked here")
    if raw[_TAR_AT:].startswith(_TAR):
        raise PlainTextError("is a tar archive; unpack it first (tar -xf), and give one of its files")
    _check_width(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Where there is a mark the codec counts from behind it.
        at = error.start + len(raw) - len(error.object)
        problem = f"byte {at + 1} of the file ({raw[at]:#04x}) is no UTF-8 text; save the file as UTF-8"
        raise PlainTextError(problem, _line(raw, at)) from None
    if (at := raw.find(b"\0")) >= 0:
        raise PlainTextError(f"byte {at + 1} of the file is NUL; a text has none", _line(raw, at))
    _check_line_ends(text)
    return text


def _unpacked(raw: bytes, most_bytes: int) -> bytes:
    """All members of a gzip file, one after the other, never more than ``most_bytes`` of them in memory."""
    parts: list[bytes] = []
    size = 0
    while raw:
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            part = member.decompress(raw, most_bytes + 1 - size)
        except zlib.error as error:
            raise PlainTextError(f"is gzipped, and damaged: {str(error).rpartition(': ')[2]}") from None
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise PlainTextError(f"is gzipped, and larger than {most_bytes} bytes once unpacked")
        if not member.eof:
            raise PlainTextError("is gzipped, and ends too soon; the file is not whole")
        # A file may be padded with zeros, as from a tape.
        raw = member.unused_data.lstrip(b"\0")
        if raw and not raw.startswith(GZIP):
            raise PlainTextError("is gzipped, and something else follows the gzipped data")
    return b"".join(parts)


def _check_width(raw: bytes) -> None:
    """Raises PlainTextError for text whose characters take two or four bytes each, with a mark or without one."""
    encoding = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)
    head = raw[:_HEAD]
    if encoding is None and len(head) >= 4 and b"\0" in head:
        columns = [head[place::4].strip(b"\0") for place in range(4)]
        filled = [place for place, column in enumerate(columns) if column]
        if filled in ([0], [3]):
            encoding = "UTF-32"
        elif filled in ([0, 2], [1, 3]) and b"\0" not in head[filled[0] :: 2]:
            encoding = "UTF-16"
    if encoding is not None:
        raise PlainTextError(f"is {encoding} text; save it as UTF-8 (iconv -f {encoding} -t UTF-8)")


def _check_line_ends(text: str) -> None:
    """Raises PlainTextError where a carriage return alone ends a line: other tools count lines otherwise."""
    lone = _LONE_RETURN.search(text)
    if lone is None:
        return
    remedy = "end lines with a line feed (tr '\\r' '\\n')"
    if "\n" not in text:
        raise PlainTextError(f"its lines end with a carriage return alone, as on old Macs; {remedy}")
    raise PlainTextError(
        f"a carriage return stands alone in this line, as old Macs end lines; {remedy}",
        text.count("\n", 0, lone.start()) + 1,
    )


def _line(raw: bytes, at: int) -> int:
    return raw.count(b"\n", 0, at) + 1

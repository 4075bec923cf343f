"""A body that comes in chunks, read as strictly as RFC 9112, section 7.1, lets a server. Pure but for the stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from controller.api.http11.head import trailer_fault

MAX_CHUNK_LINE = 4096
"""Bytes of the line before a chunk, its extensions and its end included, and of a line after the last one."""
MAX_OVERHEAD = 2**20
"""Bytes of all such lines of a body together, at most."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;%s(?:=(?:%s|%s))?)*\r\n" % (_TOKEN, _TOKEN, _QUOTED))


class Stream(Protocol):
    """What the bytes of a connection are read from."""

    def read(self, size: int, /) -> bytes:
        """Returns so many bytes, or fewer where the connection ends."""

    def readline(self, size: int, /) -> bytes:
        """Returns the next line with its end, and at most so many bytes."""


class ChunkError(ValueError):
    """Chunks that are refused; the message says what is wrong. Where the next request begins is not known then."""


class Chunks:
    """The body that ``stream`` has next. ``is_done``: all of it was read, its last line too.

    ``pause`` is called before each line between the chunks: a body of tiny chunks takes long although all of it is
    there.
    """

    def __init__(self, stream: Stream, pause: Callable[[], None] = lambda: None) -> None:
        self._stream = stream
        self._pause = pause
        self._left = 0
        self._has_begun = False
        self._overhead = 0
        self.is_done = False

    def read(self, size: int) -> bytes:
        """Returns the next ``size`` bytes of the body, or fewer at its end. Raises ChunkError, then and ever after."""
        parts: list[bytes] = []
        while size > 0 and not self.is_done:
            if self._left == 0:
                self._next()
                continue
            data = self._stream.read(min(size, self._left))
            if not data:
                raise _ended()
            parts.append(data)
            size -= len(data)
            self._left -= len(data)
            if self._left == 0:
                self._expect_end()
        return b"".join(parts)

    def _next(self) -> None:
        """Go on to the next chunk, or past the end of the body."""
        line = self._line()
        match = _SIZE.fullmatch(line)
        if match is None:
            raise ChunkError(
                f"a chunk begins with {_shown(line)}; it must be its size in hexadecimal digits alone, then CR LF"
            )
        self._left = int(match[1], 16)
        if self._left == 0:
            while (line := self._line()) != b"\r\n":
                self._check_trailer(line)
            self.is_done = True

    def _check_trailer(self, line: bytes) -> None:
        if not line.endswith(b"\r\n"):
            raise ChunkError(f"the line {_shown(line)} after the last chunk does not end with CR LF")
        if fault := trailer_fault(line[:-2]):
            raise ChunkError(f"after the last chunk, {fault}")

    def _expect_end(self) -> None:
        end = self._stream.read(2)
        if end == b"\r\n":
            return
        if len(end) < 2:
            raise _ended()
        raise ChunkError(f"a chunk is followed by {_shown(end)}; after so many bytes as it says, CR LF ends it")

    def _line(self) -> bytes:
        self._pause()
        line = self._stream.readline(MAX_CHUNK_LINE)
        self._overhead += len(line)
        if len(line) >= MAX_CHUNK_LINE:
            raise ChunkError(f"a line between its chunks has {MAX_CHUNK_LINE} bytes or more")
        if self._overhead > MAX_OVERHEAD:
            raise ChunkError(f"the lines between its chunks have more than {MAX_OVERHEAD} bytes; send larger chunks")
        if not line.endswith(b"\n"):
            raise _ended()
        return line


def _ended() -> ChunkError:
    return ChunkError("the connection ended in the middle of a chunk")


def _shown(text: bytes) -> str:
    return ascii(text[:40].decode("latin-1"))

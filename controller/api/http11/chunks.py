"""Reads a body in chunks, as strictly as RFC 9112, section 7.1, allows. Pure but for the stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from controller.api.http11.head import trailer_fault

MAX_CHUNK_LINE = 4096
"""Limits the line before a chunk, with its extensions and its end, and each line after the last chunk, in bytes."""
MAX_OVERHEAD = 2**20
"""Limits all such lines of a body together, in bytes."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;%s(?:=(?:%s|%s))?)*\r\n" % (_TOKEN, _TOKEN, _QUOTED))


class Stream(Protocol):
    """The source of a connection's bytes."""

    def read(self, size: int, /) -> bytes:
        """Returns ``size`` bytes, or fewer if the connection ends."""

    def readline(self, size: int, /) -> bytes:
        """Returns the next line with its end, but at most ``size`` bytes."""


class ChunkError(ValueError):
    """The chunks are malformed; the message says how. The beginning of the next request is then unknown."""


class Chunks:
    """The next body in ``stream``. ``is_done`` says whether all of it was read, including its last line.

    ``pause`` is called before each line between the chunks, because a body of tiny chunks takes long even if all of it
    has arrived.
    """

    def __init__(self, stream: Stream, pause: Callable[[], None] = lambda: None) -> None:
        self._stream = stream
        self._pause = pause
        self._left = 0
        self._has_begun = False
        self._overhead = 0
        self.is_done = False

    def read(self, size: int) -> bytes:
        """Returns the next ``size`` bytes of the body, or fewer at its end.

        Raises ChunkError, and then at every later call.
        """
        parts: list[bytes] = []
        while size > 0 and not self.is_done:
            if self._left == 0:
                self._begin_chunk()
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

    def _begin_chunk(self) -> None:
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
        raise ChunkError(f"a chunk is followed by {_shown(end)}; CR LF must follow after exactly its size")

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

"""Lines of text out of the bytes of a file. Pure."""

from __future__ import annotations

from collections.abc import Iterator

MAX_LINE_BYTES = 64 * 1024
_MARK = b"\xef\xbb\xbf"
"""What some programs put at the begin of a file in UTF-8."""


class Lines:
    """Cuts a stream of bytes into lines, however it was split; keeps what is not a whole line yet.

    Lines end with a newline or (progress bars) a carriage return. One longer than 64 KiB is dropped whole, and counts
    as ``dropped``. NULs are left out: a file that was cut while its writer went on begins with them.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False
        self.dropped = 0

    def feed(self, data: bytes) -> Iterator[str]:
        """The whole lines that ``data`` completes, without their ends; undecodable bytes are replaced."""
        parts = (self._rest + data.replace(b"\0", b"")).replace(b"\r", b"\n").split(b"\n")
        rest = parts.pop()
        lines = []
        for part in parts:
            if len(part) > MAX_LINE_BYTES:
                self._drop()
            elif part and not self._skipping:
                lines.append(part)
            self._skipping = False
        if len(rest) > MAX_LINE_BYTES:
            self._drop()
        if self._skipping:
            rest = b""
        self._rest = rest
        return (line.removeprefix(_MARK).decode(errors="replace") for line in lines)

    def _drop(self) -> None:
        self.dropped += not self._skipping
        self._skipping = True

    def unfinished(self) -> str | None:
        """Returns the last line if it has no end so far; it is kept, since the rest of it may come."""
        return self._rest.removeprefix(_MARK).decode(errors="replace") if self._rest.strip() else None

    def reset(self) -> None:
        """Forget the unfinished line: the file began anew."""
        self._rest, self._skipping = b"", False

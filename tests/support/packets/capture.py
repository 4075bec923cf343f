"""Reads what a port has sent from a file that grows (pcap, microseconds or nanoseconds, in this machine's order)."""

from __future__ import annotations

import struct
from pathlib import Path

_FILE_HEADER, _FRAME_HEADER = 24, struct.Struct("=IIII")


class Capture:
    """The frames in a file, each once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = _FILE_HEADER

    def frames(self) -> list[bytes]:
        """Returns the whole frames that came since the last call."""
        data = self.path.read_bytes() if self.path.exists() else b""
        found = []
        while len(data) >= self._read + _FRAME_HEADER.size:
            _, _, length, _ = _FRAME_HEADER.unpack_from(data, self._read)
            begin = self._read + _FRAME_HEADER.size
            if len(data) < begin + length:
                break
            found.append(data[begin : begin + length])
            self._read = begin + length
        return found

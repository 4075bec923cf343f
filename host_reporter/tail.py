"""Follows a file that another process writes: what is new of it, over rotation, truncation and absence."""

from __future__ import annotations

import os
import stat
from pathlib import Path

READ_BYTES = 256 * 1024
READS_A_POLL = 16
_HEAD_BYTES = 64


class Tail:
    """One followed file. ``poll`` gives the new bytes; it raises nothing: ``error`` says what is wrong, if anything.

    Rotation by rename: the old file is read to its end before the new one is begun, once that has something in it.
    Truncation (copytruncate): the file is read from its start again; one that has regrown beyond the old place is
    known by its first bytes. A file that is not there yet is waited for.
    """

    def __init__(self, path: Path, *, follow_links: bool = True) -> None:
        self.path = path
        self.error: str | None = None
        self._flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._head = b""

    def poll(self) -> tuple[bytes, bool]:
        """New bytes (at most 4 MiB a call), and whether they begin a file anew, so that a half line before is void."""
        try:
            if self._descriptor is None:
                return (self._read(), True) if self._open() else (b"", False)
            restarted = self._restart_if_truncated()
            data = self._read()
            if not data and self._replaced():
                # Whoever begins the new file has done with the old one: what came last is there by now.
                if data := self._read():
                    return data, restarted
                self.close()
                return (self._read(), True) if self._open() else (b"", False)
        except (OSError, ValueError) as error:
            # ValueError: a path that no file can have.
            reason = error.strerror if isinstance(error, OSError) else None
            self.error = f"{self.path}: {reason or error}"
            self.close()
            return b"", False
        self.error = None
        return data, restarted

    def close(self) -> None:
        """Let go of the file; a later poll opens what is then at the path, from its start."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._identity = None, None
        self._offset, self._head = 0, b""

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self.path, self._flags)
        except FileNotFoundError:
            self.error = f"{self.path}: not there yet"
            return False
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is no ordinary file")
        self._identity, self.error = (status.st_dev, status.st_ino), None
        return True

    def _read(self) -> bytes:
        assert self._descriptor is not None
        chunks = []
        for _ in range(READS_A_POLL):
            chunk = os.pread(self._descriptor, READ_BYTES, self._offset)
            if not chunk:
                break
            if len(self._head) < _HEAD_BYTES and self._offset == len(self._head):
                self._head += chunk[: _HEAD_BYTES - len(self._head)]
            self._offset += len(chunk)
            chunks.append(chunk)
        return b"".join(chunks)

    def _restart_if_truncated(self) -> bool:
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        if size == self._offset or (
            size > self._offset and os.pread(self._descriptor, len(self._head), 0) == self._head
        ):
            return False
        self._offset, self._head = 0, b""
        return True

    def _replaced(self) -> bool:
        """Whether another file is at the path, and begun: until then its writer may still write into the old one."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) != self._identity and status.st_size > 0

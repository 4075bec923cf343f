"""Follows a file that another process writes, over rotation, truncation and absence."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from host_reporter.readers.opening import open_regular

READ_BYTES = 256 * 1024
"""A poll reads at most so many bytes, so that many files get their turns."""

_WITNESS_BYTES = 64
_LAST_BYTES = 4096
_SETTLED_NS = 10**9
"""A change this long ago has another time than the next one; file systems have coarse clocks."""


class Tail:
    """One followed file. ``poll`` gives the new bytes; it raises nothing: ``error`` says what is wrong, if anything.

    Rotation by rename: the old file is read to its end before the new one is begun, once that has something in it.
    Truncation (copytruncate): the file is read from its start again; one that has regrown up to the old place or beyond
    is known by its first bytes, and by those before that place. A file that is not there yet is waited for.
    """

    def __init__(
        self,
        path: Path,
        *,
        follow_links: bool = True,
        shown: str | None = None,
        owner: int | None = None,
        or_public: bool = False,
    ) -> None:
        """``shown``: its name in messages. ``owner`` and ``or_public``: whose the file must be, as of a Location."""
        self.path = path
        self.shown = shown or str(path)
        self.error: str | None = None
        self.owner, self.or_public, self.follow_links = owner, or_public, follow_links
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = self._goal = 0
        self._head = self._recent = b""
        self._settled: tuple[int, int] | None = None
        self._is_unread = False

    def poll(self) -> tuple[bytes, bool]:
        """New bytes, at most READ_BYTES, and whether they begin a file anew, so that a half line before is void."""
        try:
            if self._descriptor is None:
                return self._first_read()
            restarted = self._restart_if_truncated() or self._is_unread
            self._is_unread = False
            data = self._read()
            if not data and self._replaced():
                # Whoever begins the new file has done with the old one: what came last is there by now.
                if data := self._read():
                    return data, restarted
                self.close()
                return self._first_read()
        except (OSError, ValueError) as error:
            # ValueError: a path that no file can have.
            reason = error.strerror if isinstance(error, OSError) else None
            self.error = f"{self.shown}: {reason or error}"
            self.close()
            return b"", False
        self.error = None
        return data, restarted

    def close(self) -> None:
        """Let go of the file; a later poll opens what is then at the path, from its start."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._identity = None, None
        self._begin_anew()

    def aim(self) -> None:
        """Note how much there is to read now; ``is_there`` when that was read, or is no longer the file."""
        try:
            status = os.fstat(self._descriptor) if self._descriptor is not None else self.path.stat()
        except (OSError, ValueError):
            self._goal = 0
        else:
            self._goal = status.st_size

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read."""
        return self._offset >= self._goal

    @property
    def modified(self) -> float | None:
        """When the open file was last written, in seconds since the epoch; None where that is not known."""
        try:
            return os.fstat(self._descriptor).st_mtime if self._descriptor is not None else None
        except OSError:
            return None

    @property
    def size(self) -> int | None:
        """The bytes of the open file; None where that is not known."""
        try:
            return os.fstat(self._descriptor).st_size if self._descriptor is not None else None
        except OSError:
            return None

    def first_bytes(self, count: int) -> bytes:
        """The beginning of the file. It is opened if need be."""
        try:
            if self._descriptor is None and not self._open():
                return b""
            assert self._descriptor is not None
            return os.pread(self._descriptor, count, 0)
        except (OSError, ValueError):
            return b""

    def last_bytes(self) -> bytes:
        """A few lines at the end of the file. It is opened if need be."""
        try:
            if self._descriptor is None and not self._open():
                return b""
            assert self._descriptor is not None
            size = os.fstat(self._descriptor).st_size
            return os.pread(self._descriptor, _LAST_BYTES, max(size - _LAST_BYTES, 0))
        except (OSError, ValueError):
            return b""

    def _open(self) -> bool:
        try:
            self._descriptor = open_regular(
                self.path, follow_links=self.follow_links, owner=self.owner, or_public=self.or_public
            )
        except FileNotFoundError:
            self.error = f"{self.shown}: not there yet"
            return False
        status = os.fstat(self._descriptor)
        self._identity, self.error = (status.st_dev, status.st_ino), None
        self._is_unread = True
        return True

    def _first_read(self) -> tuple[bytes, bool]:
        if not self._open():
            return b"", False
        self._is_unread = False
        return self._read(), True

    def _read(self) -> bytes:
        assert self._descriptor is not None
        chunk = os.pread(self._descriptor, READ_BYTES, self._offset)
        if chunk.startswith(b"\0") and not chunk.strip(b"\0"):
            chunk = os.pread(self._descriptor, READ_BYTES, self._offset) if self._skip_hole() else b""
        if len(self._head) < _WITNESS_BYTES and self._offset == len(self._head):
            self._head += chunk[: _WITNESS_BYTES - len(self._head)]
        self._recent = (self._recent + chunk)[-_WITNESS_BYTES:]
        self._offset += len(chunk)
        return chunk

    def _skip_hole(self) -> bool:
        """Go on where data begins. A file that was cut, and whose writer went on where it was, begins with a hole.

        Returns whether there is data; a file of any size may be a hole up to its end, and data may come into it.
        """
        assert self._descriptor is not None
        try:
            data = os.lseek(self._descriptor, self._offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                self._goal = min(self._goal, self._offset)
                return False
            # The file system knows no holes.
            return True
        if data != self._offset:
            self._offset, self._recent = data, b""
        return True

    def _restart_if_truncated(self) -> bool:
        assert self._descriptor is not None
        status = os.fstat(self._descriptor)
        state = (status.st_size, status.st_mtime_ns)
        if state == self._settled:
            return False
        self._settled = state if time.time_ns() - status.st_mtime_ns > _SETTLED_NS else None
        if status.st_size >= self._offset and self._is_as_read():
            return False
        self._begin_anew()
        return True

    def _is_as_read(self) -> bool:
        """Returns whether the file still holds what was read; its first and last bytes are compared."""
        assert self._descriptor is not None
        before = self._offset - len(self._recent)
        return (
            os.pread(self._descriptor, len(self._head), 0) == self._head
            and os.pread(self._descriptor, len(self._recent), before) == self._recent
        )

    def _begin_anew(self) -> None:
        self._offset = self._goal = 0
        self._head = self._recent = b""
        self._settled = None

    def _replaced(self) -> bool:
        """Returns whether another file is at the path, and not empty: its writer may still write into the old one."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) != self._identity and status.st_size > 0

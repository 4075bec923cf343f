"""Wakes the agent when a file changes, by Linux's inotify through the C library.

It only makes the agent quicker: everything is looked at once a second too, because inotify does not see what other
machines write into a shared file system, and may be out of watches.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
from pathlib import Path

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _CLOSE_WRITE = 0x2, 0x40, 0x80, 0x100, 0x200, 0x8
_FILE = _MODIFY
_FOLDER = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _CLOSE_WRITE
_READ_BYTES = 64 * 1024


class Waker:
    """Waits for changes of the watched files and folders, or for ``wake``."""

    def __init__(self) -> None:
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._wake_read, select.POLLIN)
        self._library = ctypes.CDLL(None, use_errno=True)
        self._watches: dict[Path, int] = {}
        self._descriptor = self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._descriptor >= 0:
            self._poll.register(self._descriptor, select.POLLIN)

    def watch_file(self, path: Path) -> None:
        """Be woken when what is now at ``path`` is written to; asking again costs nothing."""
        self._watch(path, _FILE)

    def watch_folder(self, path: Path) -> None:
        """Be woken when files of a folder come, go, or were written."""
        self._watch(path, _FOLDER)

    def forget(self, path: Path) -> None:
        """Watch a path no longer."""
        watch = self._watches.pop(path, None)
        if watch is not None:
            self._library.inotify_rm_watch(self._descriptor, watch)

    def wait(self, seconds: float) -> bool:
        """Wait for a change or for ``seconds``. Returns whether something was noticed."""
        ready = self._poll.poll(max(0.0, seconds) * 1000)
        for descriptor, _events in ready:
            try:
                os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
        return bool(ready)

    def wake(self) -> None:
        """End a wait, from another thread or a signal's handler."""
        if self._wake_write >= 0:
            # Full: it is awake many times over.
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"x")

    def close(self) -> None:
        """Give the descriptors back; ``wake`` does nothing from now on."""
        descriptors = (self._wake_write, self._wake_read, self._descriptor)
        self._wake_write = self._wake_read = self._descriptor = -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def _watch(self, path: Path, mask: int) -> None:
        if self._descriptor < 0:
            return
        watch = self._library.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
        if watch != self._watches.get(path, watch):
            self.forget(path)
        if watch >= 0:
            self._watches[path] = watch

"""Whether a folder's entries may be others than at the last look, by the time that the folder itself was changed.

That is the case when an entry came, went or got another name; that a file in it was written does not show. So a folder
of thousands of files costs one call a look as long as it is the same.
"""

from __future__ import annotations

from pathlib import Path

_SETTLED_SECONDS = 2.0
"""A change this long ago has another time than the next one; file systems have coarse clocks."""


class FolderStamp:
    """The state of one folder at the last look."""

    def __init__(self) -> None:
        self._stamp: tuple[int, int, int] | None = None

    def is_news(self, folder: Path, wall: float) -> bool:
        """Returns whether to list the folder again. ``wall``: now, in seconds since the epoch. Raises OSError."""
        status = folder.stat()
        stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
        if stamp == self._stamp:
            return False
        is_settled = not 0 <= wall - status.st_mtime < _SETTLED_SECONDS
        self._stamp = stamp if is_settled else None
        return True

    def forget(self) -> None:
        """The folder could not be listed: list it at the next look in any case."""
        self._stamp = None

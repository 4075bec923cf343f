"""A job's progress from a JSON document that its writer replaces, such as trainer_state.json."""

from __future__ import annotations

import os
import time
from pathlib import Path

from host_reporter.formats.events import Event
from host_reporter.formats.outputs.documents import DocumentReader
from host_reporter.readers.log_source import SILENT_LINES
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.opening import open_regular

MAX_DOCUMENT_BYTES = 16 * 2**20
"""Read no larger document."""

TORN_SECONDS = 5.0
"""Report a document that is no JSON if it stays so for so long; it may just be being written."""

_Stamp = tuple[int, int, int]


class DocumentSource:
    """Events of a document. It is read when it has changed."""

    is_costly = False

    def __init__(
        self,
        path: Path,
        reader: DocumentReader,
        *,
        shown: str | None = None,
        follow_links: bool = True,
        owner: int | None = None,
        or_public: bool = False,
    ) -> None:
        self.reader = reader
        self._path, self._shown = path, shown or str(path)
        self._owner, self._or_public, self._follow_links = owner, or_public, follow_links
        self._stamp: _Stamp | None = None
        self._modified: float | None = None
        self._error: str | None = f"{self._shown}: not there yet"
        self._torn_at: float | None = None
        self._torn = ""

    @property
    def matched(self) -> int:
        """How many records were understood."""
        return self.reader.tally.matched

    @property
    def unmatched(self) -> int:
        """How many records were not."""
        return self.reader.tally.unmatched

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few records that were not understood."""
        return tuple(self.reader.tally.samples)

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read."""
        return self.matched + self.unmatched > 0

    def poll(self, _limit: MatchLimit) -> tuple[list[Event], bool]:
        """The events of the records since the last call. There is no more to read at once."""
        try:
            text = self._changed_text()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self._error = f"{self._shown}: {reason or error}"
            return [], False
        if text is None:
            return [], False
        try:
            events = self.reader.feed(text)
        except ValueError as error:
            self._tear(str(error))
            return [], False
        self._torn_at, self._error = None, None
        return events, False

    def rest(self, _limit: MatchLimit) -> list[Event]:
        """Nothing waits."""
        return []

    def aim(self) -> None:
        """Each poll reads all that there is."""

    @property
    def is_there(self) -> bool:
        """Each poll reads all that there is."""
        return True

    @property
    def modified(self) -> float | None:
        """When the document was last written, in seconds since the epoch."""
        return self._modified

    def seems_over(self, _limit: MatchLimit) -> bool:
        """Never: such documents tell no end."""
        return False

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know of the document."""
        if self._torn_at is not None and (final or time.monotonic() - self._torn_at > TORN_SECONDS):
            return f"{self._shown}: it is no JSON document: {self._torn}"
        if self._error is not None:
            return self._error
        if self.reader.tally.points == 0 and self.unmatched >= (1 if final else SILENT_LINES):
            return f"{self._shown}: none of its records says where the run is"
        problem = self.reader.problem()
        return f"{self._shown}: {problem}" if problem is not None else None

    def close(self) -> None:
        """No file is kept open."""

    def move(self, path: Path) -> None:
        """Read another document from now on."""
        self._path, self._shown, self._stamp = path, str(path), None
        self.reader.begin_file()

    def _changed_text(self) -> str | None:
        """Returns the text if the document has changed. Raises OSError, and ValueError where it cannot be read."""
        try:
            descriptor = open_regular(
                self._path, follow_links=self._follow_links, owner=self._owner, or_public=self._or_public
            )
        except FileNotFoundError:
            self._stamp, self._error = None, f"{self._shown}: not there yet"
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if status.st_size > MAX_DOCUMENT_BYTES:
                raise ValueError(f"it has more than {MAX_DOCUMENT_BYTES >> 20} MiB; let the job write a log or CSV")
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return None
            data = file.read(MAX_DOCUMENT_BYTES + 1)
        self._modified = status.st_mtime
        # A change within the clock's step would not show: read a young file once more.
        self._stamp = stamp if time.time() - status.st_mtime > 1.0 else None
        return data.decode(errors="replace")

    def _tear(self, reason: str) -> None:
        self._torn_at = self._torn_at if self._torn_at is not None else time.monotonic()
        self._torn, self._stamp, self._error = reason, None, None

"""A job's progress from one of several places, of which the one that counts is chosen again and again."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from host_reporter.formats.events import Event
from host_reporter.readers.log_source import ProgressSource
from host_reporter.readers.match_limit import MatchLimit

S = TypeVar("S", bound=ProgressSource)


class Chosen(ABC, Generic[S]):
    """Reads the source that ``_look`` has chosen; None: there is none yet. It looks again when nothing is new."""

    def __init__(self) -> None:
        self._source: S | None = None
        self._looked_at = float("-inf")

    @property
    def matched(self) -> int:
        """How many lines or scalars were understood."""
        return self._source.matched if self._source is not None else 0

    @property
    def unmatched(self) -> int:
        """How many were not."""
        return self._source.unmatched if self._source is not None else 0

    @property
    def samples(self) -> tuple[str, ...]:
        """The first few lines that were not understood."""
        return self._source.samples if self._source is not None else ()

    @property
    def is_costly(self) -> bool:
        """Whether its lines take too long."""
        return self._source is not None and self._source.is_costly

    @property
    def has_begun(self) -> bool:
        """Whether something of it was read."""
        return self._source is not None and self._source.has_begun

    def poll(self, limit: MatchLimit) -> tuple[list[Event], bool]:
        """Some of the events since the last call, and whether there may be more to read at once."""
        events, more = self._source.poll(limit) if self._source is not None else ([], False)
        if not events and not more:
            self._look(time.monotonic())
        return events, more

    def rest(self, limit: MatchLimit) -> list[Event]:
        """Returns the events of what waits for more."""
        return self._source.rest(limit) if self._source is not None else []

    def aim(self) -> None:
        """Note how much there is to read now; ``is_there`` when that was read."""
        self._looked_at = float("-inf")
        self._look(time.monotonic())
        if self._source is not None:
            self._source.aim()

    @property
    def is_there(self) -> bool:
        """Whether all that there was at ``aim`` was read."""
        return self._source is None or self._source.is_there

    @property
    def modified(self) -> float | None:
        """When what is read was last written, in seconds since the epoch; None where that is not known."""
        return self._source.modified if self._source is not None else None

    def seems_over(self, limit: MatchLimit) -> bool:
        """Returns whether the last event seems to be an end."""
        return self._source is not None and self._source.seems_over(limit)

    def close(self) -> None:
        """Let go of the files."""
        if self._source is not None:
            self._source.close()

    @abstractmethod
    def _look(self, now: float) -> None:
        """Choose the source, if it is time to. ``now`` is of a monotonic clock."""

"""The newest events, bounded by number and by bytes.

A reader is a number only: the id of the last event that it has. So the memory does not depend on the readers, and a
reader that is too slow learns which ids it has missed.

Ids rise by 1. Each run of a controller begins at another number, so that no id stands for two events: see ``first_id``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.events.event import Event, Gap, Kind, Users, event

MOST = 16_384
MOST_BYTES = 16 * 2**20
TOGETHER_BYTES = 32_768
"""Hand out events together until they have this many bytes."""


class Batch(NamedTuple):
    """What a reader gets next. ``missed`` comes before ``events``. ``last`` is the id that the reader then has."""

    missed: Gap | None
    events: tuple[Event, ...]
    last: int


def first_id(now: float) -> int:
    """Returns the id of the first event of a run that begins at ``now``, in seconds since the Unix epoch.

    It is the time in microseconds, which is less than 2**53, so that every reader of JSON has it exactly. A run has
    fewer events than it has microseconds. So the ids of a later run are higher, unless the clock was set back.
    """
    return int(now * 1e6)


class Ring:
    """The events. ``first`` is the id of the first one."""

    def __init__(self, first: int, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self.first = first
        self.newest = first - 1
        """The id of the newest event; that before ``first`` as long as there is none."""
        self._oldest = first
        self._most_bytes = most_bytes
        self._slots: list[Event | None] = [None] * most
        self.bytes = 0
        """The bytes of all events that are kept."""

    def __len__(self) -> int:
        return self.newest - self._oldest + 1

    def add(self, kind: Kind, time: float, data: Mapping[str, Any], users: Users = MappingProxyType({})) -> Event:
        """Add an event, and forget the oldest ones where there are too many. Arguments and errors as of ``event``.

        The newest event is kept, whatever its size.
        """
        added = event(self.newest + 1, kind, time, data, users)
        while len(self) >= len(self._slots) or (len(self) and self.bytes + len(added.sent) > self._most_bytes):
            self._forget()
        self.newest = added.id
        self._slots[added.id % len(self._slots)] = added
        self.bytes += len(added.sent)
        return added

    def after(self, last: int, *, together: int = TOGETHER_BYTES) -> Batch:
        """Returns the next events for a reader that has those up to the id ``last``, about ``together`` bytes of them.

        There is at least one event, if one is left. A reader that comes with an id which no event of this run can have
        been behind has missed all events of this run.
        """
        if last > self.newest:
            return Batch(Gap(self.first, self.newest), (), self.newest)
        missed = Gap(last + 1, self._oldest - 1) if last + 1 < self._oldest else None
        begin = number = max(last + 1, self._oldest)
        found = []
        size = 0
        while number <= self.newest and (number == begin or size < together):
            each = self._slots[number % len(self._slots)]
            assert each is not None
            found.append(each)
            size += len(each.sent)
            number += 1
        return Batch(missed, tuple(found), number - 1)

    def _forget(self) -> None:
        place = self._oldest % len(self._slots)
        gone = self._slots[place]
        assert gone is not None
        self.bytes -= len(gone.sent)
        self._slots[place] = None
        self._oldest += 1

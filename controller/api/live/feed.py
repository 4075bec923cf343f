"""The events of a running controller, and the streams that wait for them.

A stream holds only the id of the last event that it has sent. What several streams send next is put together once for
all viewers that see the same.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

import eventlet
import eventlet.event

from controller.access.caller import Caller
from controller.api.live.viewers import Viewer, shown
from controller.events.ring import Batch, Ring

MOST_STREAMS = 2048
AT_ONCE = 64
"""Let other work go on after so many streams were woken."""
CACHE_BYTES = 8 * 2**20
CACHE_BATCHES = 512
"""Limits the batches that are kept. Those in which a tenant sees nothing have no bytes."""

_Key = tuple[int, int, Viewer]


class Feed:
    """The ``ring``, and who waits. ``most_streams`` limits the streams."""

    def __init__(self, ring: Ring, *, most_streams: int = MOST_STREAMS) -> None:
        self.ring = ring
        self.most_streams = most_streams
        self.streams: Counter[Caller] = Counter()
        """The number of open streams by caller."""
        self.is_closed = False
        self._waiting: dict[eventlet.event.Event, None] = {}
        self._together: OrderedDict[_Key, bytes] = OrderedDict()
        self._together_bytes = 0

    def enter(self, caller: Caller) -> None:
        """A stream of a caller begins."""
        self.streams[caller] += 1

    def leave(self, caller: Caller) -> None:
        """A stream of a caller has ended."""
        self.streams[caller] -= 1
        if not self.streams[caller]:
            del self.streams[caller]

    def close(self) -> None:
        """End all streams, and let no other begin."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """Let all streams that wait look for new events. Other work goes on after each ``AT_ONCE`` of them."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for number, waiter in enumerate(waiting, 1):
            waiter.send()
            if number % AT_ONCE == 0:
                eventlet.sleep(0)

    def wait(self, last: int, seconds: float) -> None:
        """Wait for an event behind the id ``last``, or for the end of all streams, but at most for ``seconds``."""
        if self.ring.newest != last or self.is_closed:
            return
        waiter = eventlet.event.Event()
        self._waiting[waiter] = None
        try:
            with eventlet.Timeout(max(seconds, 0.0), False):
                waiter.wait()
        finally:
            self._waiting.pop(waiter, None)

    def together(self, batch: Batch, viewer: Viewer) -> bytes:
        """Returns the events of a batch as a viewer sees them, in the form of the stream."""
        if not batch.events:
            return b""
        key = (batch.events[0].id, batch.last, viewer)
        known = self._together.get(key)
        if known is not None:
            return known
        parts = (shown(event, viewer) for event in batch.events)
        made = b"".join(part for part in parts if part is not None)
        self._together[key] = made
        self._together_bytes += len(made)
        while self._together_bytes > CACHE_BYTES or len(self._together) > CACHE_BATCHES:
            _, oldest = self._together.popitem(last=False)
            self._together_bytes -= len(oldest)
        return made

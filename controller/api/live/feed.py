"""The events of a running controller, and the streams that wait for them.

A stream holds only the id of the last event that it has sent. What several streams send next is put together once for
all viewers that see the same.
"""

from __future__ import annotations

from collections import OrderedDict

import eventlet
import eventlet.event

from controller.api.live.viewers import UserOf, Viewer, shown
from controller.events.ring import Batch, Ring

MOST_STREAMS = 2048
AT_ONCE = 64
"""Let other work go on after so many streams were woken."""
CACHE_BYTES = 8 * 2**20

_Key = tuple[int, int, Viewer]


class Feed:
    """The ``ring``, and who waits. ``user_of`` returns the user of a job. ``most_streams`` limits the streams."""

    def __init__(self, ring: Ring, user_of: UserOf, *, most_streams: int = MOST_STREAMS) -> None:
        self.ring = ring
        self.most_streams = most_streams
        self.streams: dict[str, int] = {}
        """The number of open streams by the name of the caller."""
        self.is_closed = False
        self._user_of = user_of
        self._waiting: list[list[eventlet.event.Event]] = []
        self._together: OrderedDict[_Key, bytes] = OrderedDict()
        self._together_bytes = 0

    def enter(self, name: str) -> None:
        """A stream of a caller begins."""
        self.streams[name] = self.streams.get(name, 0) + 1

    def leave(self, name: str) -> None:
        """A stream of a caller has ended."""
        self.streams[name] -= 1
        if not self.streams[name]:
            del self.streams[name]

    def close(self) -> None:
        """End all streams, and let no other begin."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """Let all streams that wait look for new events. Other work goes on after each ``AT_ONCE`` of them."""
        waiting, self._waiting = self._waiting, []
        for group in waiting:
            for waiter in group:
                if not waiter.ready():
                    waiter.send()
            eventlet.sleep(0)

    def wait(self, last: int, seconds: float) -> None:
        """Wait for an event behind the id ``last``, or for the end of all streams, but at most for ``seconds``."""
        if self.ring.newest != last or self.is_closed:
            return
        if not self._waiting or len(self._waiting[-1]) >= AT_ONCE:
            self._waiting.append([])
        group = self._waiting[-1]
        waiter = eventlet.event.Event()
        group.append(waiter)
        is_woken = False
        with eventlet.Timeout(max(seconds, 0.0), False):
            waiter.wait()
            is_woken = True
        if not is_woken:
            group.remove(waiter)

    def together(self, batch: Batch, viewer: Viewer) -> bytes:
        """Returns the events of a batch as a viewer sees them, in the form of the stream."""
        if not batch.events:
            return b""
        key = (batch.events[0].id, batch.last, viewer)
        known = self._together.get(key)
        if known is not None:
            return known
        parts = (shown(event, viewer, self._user_of) for event in batch.events)
        made = b"".join(part for part in parts if part is not None)
        self._together[key] = made
        self._together_bytes += len(made)
        while self._together_bytes > CACHE_BYTES:
            _, oldest = self._together.popitem(last=False)
            self._together_bytes -= len(oldest)
        return made

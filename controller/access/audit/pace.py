"""Limits the records of refused tries, so that who is refused cannot fill the disk. Pure."""

from __future__ import annotations

from collections import OrderedDict

A_MINUTE = 20
"""Record so many refused tries of one client in a minute, and only count the others."""
MOST_CLIENTS = 1024
"""Remember so many clients; of more, those that were refused longest ago are forgotten."""


class Pace:
    """Decides which refused tries are recorded. ``now`` is in seconds of a steady clock."""

    def __init__(self) -> None:
        self.skipped = 0
        """How many refused tries were not recorded since the last call of ``dequeue_skipped``."""
        self._clients: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def admits(self, client: str, now: float) -> bool:
        """Returns whether to record a refused try of ``client``."""
        began, count = self._clients.pop(client, (now, 0))
        if now - began >= 60.0:
            began, count = now, 0
        self._clients[client] = (began, count + 1)
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        self.skipped += count >= A_MINUTE
        return count < A_MINUTE

    def dequeue_skipped(self) -> int:
        """Returns how many were skipped since the last call."""
        skipped, self.skipped = self.skipped, 0
        return skipped

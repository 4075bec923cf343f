"""Limits the records of refused tries, so that who is refused cannot fill the disk. Pure."""

from __future__ import annotations

import math
from collections import OrderedDict

MINUTE = 60.0
A_MINUTE = 20
"""Record so many refused tries of one client in a minute, and only count the others."""
STRANGERS_A_MINUTE = 200
"""Record so many refused tries of all strangers together in a minute: one may have any number of addresses."""
MOST_CLIENTS = 1024
"""Remember so many clients; of more, those that were refused longest ago are forgotten."""


class Pace:
    """Decides which refused tries are recorded. ``now`` is in seconds of a steady clock."""

    def __init__(self) -> None:
        self.skipped = 0
        """How many refused tries were not recorded since the last call of ``dequeue_skipped``."""
        self._clients: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._minute, self._strangers = -math.inf, 0

    def admits(self, client: str, now: float, *, is_stranger: bool) -> bool:
        """Returns whether to record a refused try of ``client``. A stranger has not proved who it is."""
        is_admitted = not is_stranger or self._admits_stranger(now)
        # Strangers beyond their limit are not remembered either: they would take the place of others.
        is_admitted = is_admitted and self._admits_client(client, now)
        self.skipped += not is_admitted
        self._strangers += is_admitted and is_stranger
        return is_admitted

    def dequeue_skipped(self) -> int:
        """Returns how many were skipped since the last call."""
        skipped, self.skipped = self.skipped, 0
        return skipped

    def _admits_stranger(self, now: float) -> bool:
        if now - self._minute >= MINUTE:
            self._minute, self._strangers = now, 0
        return self._strangers < STRANGERS_A_MINUTE

    def _admits_client(self, client: str, now: float) -> bool:
        began, count = self._clients.pop(client, (now, 0))
        if now - began >= MINUTE:
            began, count = now, 0
        self._clients[client] = (began, count + 1)
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        return count < A_MINUTE

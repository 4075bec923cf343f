"""Bytes that switches have sent by class, as counts that only rise. Pure.

A switch's own counters begin again at 0 when it restarts and when a port's queues are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.dataplane.queues.numbers import class_of

MAX_REMEMBERED = 65_536
"""Counters of a switch that are remembered. Beyond that, those of ports that are gone are forgotten."""


class ByteCounts:
    """The sums over a switch's ports, kept while ports, queues and the switch itself come and go."""

    def __init__(self) -> None:
        self._last: dict[int, dict[tuple[int, int], int]] = {}
        self._totals: dict[tuple[int, int | None], int] = {}

    def take(self, dpid: int, counters: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        """Take a switch's counters: packets and bytes by port and queue.

        A counter that is less than it was has begun anew, so all that it shows was sent since.
        """
        last = self._last.setdefault(dpid, {})
        for (port, queue), (_, count) in counters.items():
            before = last.get((port, queue), 0)
            risen = count - before if count >= before else count
            last[port, queue] = count
            key = (dpid, class_of(queue))
            self._totals[key] = self._totals.get(key, 0) + risen
        if len(last) > MAX_REMEMBERED:
            self._last[dpid] = {place: count for place, (_, count) in counters.items()}

    def totals(self) -> dict[tuple[int, int | None], int]:
        """Bytes by switch and service class (None: all other traffic)."""
        return dict(self._totals)

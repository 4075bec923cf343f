"""Keeps what was seen in the last half minute, and what is said and counted of each interface. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from host_reporter.nic.netdev import Count
from host_reporter.unseen.compare import Rate, Rates, compare, more_carried
from host_reporter.unseen.counts import Moment, Sample
from host_reporter.unseen.verdict import judge

WINDOW_SECONDS = 30.0
"""Compare over this time: bytes that wait in buffers, and counters that drivers renew once a second, are little of
it."""

STALE_SECONDS = 90.0
"""Say no longer what was true so long ago, where nothing could be compared since."""


class Said(NamedTuple):
    """What is known of an interface or port in one direction.

    ``carried`` and ``unseen`` are bytes since the first sample. ``rate`` is the rate of unseen bytes, in bytes a
    second, that is worth saying; None: there is nothing to say.
    """

    carried: int = 0
    unseen: float = 0.0
    rate: float | None = None


_NOTHING = Said()


@dataclass
class _Known:
    """An interface or port: both directions."""

    sent: Said = _NOTHING
    received: Said = _NOTHING


class Window:
    """What was seen in the last WINDOW_SECONDS."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque()
        self._previous: Sample | None = None
        self._known: dict[str, _Known] = {}
        self._judged_at = float("-inf")

    @property
    def said(self) -> dict[str, tuple[Said, Said]]:
        """What is known of each interface or port: sent, received."""
        return {name: (known.sent, known.received) for name, known in self._known.items()}

    def add(self, new: Moment) -> None:
        """Note a moment, compare it with the first of the window, and count the bytes since the one before."""
        before, self._previous = self._previous, new.late
        self._known = {name: self._known.get(name, _Known()) for name in (*new.late.netdevs, *new.late.ports)}
        more = more_carried(before, new.late) if before is not None else None
        if before is None or more is None:
            self._moments = deque([new])
            return
        self._count(more)
        self._moments.append(new)
        while len(self._moments) > 1 and self._span(1) >= WINDOW_SECONDS:
            self._moments.popleft()
        rates = compare(self._moments[0].late, new.early)
        if rates is not None and self._span(0) >= WINDOW_SECONDS:
            self._judge(rates, new.late.time - before.time)
            self._judged_at = new.late.time

    def restart(self, now: float) -> None:
        """Something was not counted: compare again when a whole window is known. What was said stays for a while."""
        self._moments.clear()
        if now - self._judged_at > STALE_SECONDS:
            self.end()

    def end(self) -> None:
        """Nothing is compared any more, so nothing is said. Counts stay."""
        self._moments.clear()
        self._previous = None
        for known in self._known.values():
            known.sent, known.received = known.sent._replace(rate=None), known.received._replace(rate=None)

    def _span(self, place: int) -> float:
        """Returns the seconds from a moment of the window to its last."""
        return self._moments[-1].late.time - self._moments[place].late.time

    def _count(self, more: dict[str, Count]) -> None:
        for name, known in self._known.items():
            known.sent = known.sent._replace(carried=known.sent.carried + more[name].sent)
            known.received = known.received._replace(carried=known.received.carried + more[name].received)

    def _judge(self, rates: dict[str, Rates], seconds: float) -> None:
        for name, known in self._known.items():
            known.sent = _judged(known.sent, rates[name].sent, seconds)
            known.received = _judged(known.received, rates[name].received, seconds)


def _judged(said: Said, rate: Rate, seconds: float) -> Said:
    """Returns what is to say now. Bytes count as unseen only while that is said."""
    say = judge(said.rate, rate)
    more = rate.unseen * seconds if say is not None else 0.0
    return said._replace(rate=say, unseen=said.unseen + more)

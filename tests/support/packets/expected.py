"""The cases of the table of packets: their frames, and what the table says becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from controller.dataplane.queues.numbers import queue_of
from docs.generate.packets import HOSTS, Packets, Row, cases, read
from tests.support.packets.frames import FRAMES, Scene
from tests.support.packets.world import BETWEEN, LAST, OWN_POINTS, POINTS, UNTRUSTED_PORT, Pair, has_own_dscps


class Outcome(NamedTuple):
    """The queue at the switch (None: no switch enforces) and the TOS byte behind it (None: the packet is not IP)."""

    queue: int | None
    tos: int | None


@lru_cache(maxsize=1)
def packets() -> Packets:
    """Returns the table."""
    return read()


class Case(NamedTuple):
    """A row of the table in one IP version; ``family`` is None for packets that are not IP."""

    name: str
    row: Row
    family: int | None

    @property
    def pair(self) -> Pair:
        return BETWEEN[self.row.between]

    def sent(self) -> int | None:
        """Returns the TOS byte that the packet's sender sets; None where the packet is not IP."""
        return None if self.family is None else self.row.dscp << 2 | self.row.ecn

    def frame(self, tos: int | None) -> bytes:
        """Returns the frame with a TOS byte."""
        return self._frame(tos, self.row.tags)

    def untagged(self, tos: int | None) -> bytes:
        """Returns the same frame without its VLANs."""
        return self._frame(tos, ())

    def _frame(self, tos: int | None, tags: tuple[int, ...]) -> bytes:
        dscp, ecn = (0, 0) if tos is None else (tos >> 2, tos & 3)
        return bytes(FRAMES[self.row.packet](Scene(self.pair, self.family, dscp, ecn, tags)))

    def arriving(self, combination: str) -> int | None:
        """Returns the TOS byte with which the packet comes to the switch.

        What a host that is not trusted should have cleared comes all the same.
        """
        is_forged = self.pair.src.port == UNTRUSTED_PORT and self.row.dscp in POINTS.owned
        if combination.startswith("both") and not is_forged:
            return self.leaving(own=has_own_dscps(combination))
        return self.sent()

    def leaving(self, *, own: bool) -> int | None:
        """Returns the TOS byte with which the packet leaves its host where hosts enforce.

        ``own``: jobs have DSCPs of their own.
        """
        return self._tos(packets().places[self.row.place].cells[HOSTS].dscp, None, own=own)

    def outcome(self, combination: str) -> Outcome:
        """Returns what the table expects in a combination."""
        queue, dscp = packets().places[self.row.place].cells[combination]
        if queue is None:
            return Outcome(None, self.leaving(own=False))
        service_class = self._class(queue)
        return Outcome(queue_of(service_class), self._tos(dscp, service_class, own=has_own_dscps(combination)))

    def _class(self, queue: str) -> int | None:
        named = {"first": 0, "last": LAST, "other": None}
        return self.pair.service_class if queue == "job" else named[queue]

    def _tos(self, dscp: str, service_class: int | None, *, own: bool) -> int | None:
        sent, points = self.sent(), OWN_POINTS if own else POINTS
        if sent is None or dscp == "kept" or (dscp == "fill" and sent >> 2 not in {0, *points.owned}):
            return sent
        named = {"zero": points.other, "ack": points.acknowledgements}
        if own and dscp in ("fill", "job"):
            written = self.pair.own_dscp
        elif dscp == "fill":
            assert service_class is not None, "other traffic has no DSCP"
            written = points.classes[service_class]
        else:
            written = points.classes[self.pair.service_class] if dscp == "job" else named[dscp]
        return written << 2 | sent & 3


def all_cases() -> Iterator[Case]:
    """Yields each case of each row."""
    for row in packets().rows:
        for name, family in cases(row):
            yield Case(name, row, family)

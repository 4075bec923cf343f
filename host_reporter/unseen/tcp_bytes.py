"""Counts the bytes of all TCP sockets of one network namespace by their local address, whosever they are. Pure.

Connections within the host do not count, because no interface carries them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable

from host_reporter.discovery.sockets.sock_diag import LISTEN, Socket
from host_reporter.ip_addresses import is_loopback
from host_reporter.nic.netdev import Count

MAX_LEAVING = 20_000
"""Keep the last counts of at most this many sockets that are no longer listed and whose end was not told yet."""

_Counts = tuple[int, int]


class TcpBytes:
    """The bytes of one namespace. ``total`` has them by local address (4 or 16 bytes).

    With ``from_first_look`` what sockets had carried before the first look does not count. Without it that counts, too:
    a namespace that is found late must not leave bytes unexplained that an interface has carried meanwhile.
    """

    def __init__(self, *, from_first_look: bool) -> None:
        self.total: dict[bytes, Count] = {}
        self._last: dict[int, _Counts] = {}
        self._leaving: OrderedDict[int, _Counts] = OrderedDict()
        self._is_baseline = from_first_look

    @property
    def sum(self) -> Count:
        """The bytes of all addresses."""
        total = Count()
        for each in self.total.values():
            total = total.plus(each)
        return total

    def count(self, sockets: Iterable[Socket], within: Container[bytes]) -> None:
        """Count what the listed sockets have carried since they were counted. ``within``: addresses of this host."""
        listed: dict[int, _Counts] = {}
        for sock in sockets:
            if _is_counted(sock, within):
                listed[sock.cookie] = now = (sock.acked, sock.received)
                self._add(sock, self._before(sock.cookie) or (now if self._is_baseline else (0, 0)))
        self._leaving.update((cookie, self._last[cookie]) for cookie in self._last.keys() - listed.keys())
        while len(self._leaving) > MAX_LEAVING:
            self._leaving.popitem(last=False)
        self._last = listed
        self._is_baseline = False

    def settle(self, ended: Iterable[Socket], within: Container[bytes]) -> None:
        """Count what sockets that have ended carried at last; of the same look ``count`` comes first."""
        for sock in ended:
            before = self._before(sock.cookie) or (0, 0)
            self._last.pop(sock.cookie, None)
            if _is_counted(sock, within):
                self._add(sock, before)

    def _before(self, cookie: int) -> _Counts | None:
        """Returns the last counts of a socket; None: it is new."""
        left = self._leaving.pop(cookie, None)
        return self._last.get(cookie, left)

    def _add(self, sock: Socket, before: _Counts) -> None:
        more = Count(max(sock.acked - before[0], 0), max(sock.received - before[1], 0))
        if more != (0, 0):
            self.total[sock.local] = self.total.get(sock.local, Count()).plus(more)


def _is_counted(sock: Socket, within: Container[bytes]) -> bool:
    """Returns whether an interface carries a socket's bytes."""
    return sock.state != LISTEN and not is_loopback(sock.remote) and sock.remote not in within

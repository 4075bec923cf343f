"""The network namespaces that jobs' processes are in: opened once, kept while a job is there, and looked at apart.

A namespace that has another host's address is that host's (hosts may be emulated on one machine), and is left to its
agent.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

from host_reporter.discovery.processes import network_namespace
from host_reporter.discovery.sockets.netlink import Diag, open_in
from host_reporter.discovery.sockets.sock_diag import DiagError
from host_reporter.discovery.sockets.table import SocketTable
from host_reporter.notices import Notices
from host_reporter.procfs import PROC

MAX_NAMESPACES = 256
"""Enter no more namespaces beside the agent's own than this."""


class Namespaces:
    """For one thread. No method raises. ``heir``: who goes on with the counts of those that are let go."""

    def __init__(self, notices: Notices, heir: SocketTable) -> None:
        self._notices = notices
        self._heir = heir
        self._open: dict[int, tuple[Diag, SocketTable, frozenset[bytes]]] = {}
        self._elsewhere: set[int] = set()
        """Other hosts', and those that may not be entered."""

    def follow(self, present: Mapping[int, int], others: frozenset[bytes]) -> None:
        """Have those open that processes are in now, by inode. ``others``: the addresses of other hosts."""
        for inode in self._open.keys() - present.keys():
            self._let_go(inode)
        self._elsewhere &= present.keys()
        for inode, pid in present.items():
            if inode not in self._open and inode not in self._elsewhere and len(self._open) < MAX_NAMESPACES:
                self._enter(inode, pid, others)

    def each(self) -> list[tuple[Diag, SocketTable]]:
        """Those that are open."""
        return [(diag, table) for diag, table, _ in self._open.values()]

    def tables(self) -> list[SocketTable]:
        """What was seen in them."""
        return [table for _, table, _ in self._open.values()]

    def addresses(self) -> dict[int, frozenset[bytes]]:
        """Returns the addresses that each open namespace had when it was opened, by the ``id`` of its table."""
        return {id(table): addresses for _, table, addresses in self._open.values()}

    def anew(self) -> None:
        """The addresses of hosts are others now: what was left alone may be ours, and the other way round."""
        self.close()
        self._elsewhere.clear()

    def close(self) -> None:
        """Let go of all."""
        for inode in list(self._open):
            self._let_go(inode)

    def _let_go(self, inode: int) -> None:
        diag, table, _ = self._open.pop(inode)
        self._heir.inherit(table)
        diag.close()

    def _enter(self, inode: int, pid: int, others: frozenset[bytes]) -> None:
        try:
            diag, addresses = open_in(Path(f"{PROC}/{pid}/ns/net"))
        except (OSError, DiagError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ESRCH):
                return
            self._elsewhere.add(inode)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._notices.say(
                "namespaces",
                f"the network namespace of process {pid} cannot be entered: {reason}; sockets in it are not found "
                "(the agent needs CAP_SYS_ADMIN)",
            )
            return
        # The process may have ended meanwhile, and its id be another's.
        if network_namespace(pid) != inode:
            diag.close()
        elif others & addresses:
            diag.close()
            self._elsewhere.add(inode)
        else:
            self._open[inode] = (diag, SocketTable(), addresses)

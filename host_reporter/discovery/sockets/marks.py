"""Marks on live sockets of other processes: IP_TOS and IPV6_TCLASS through a copy of their descriptor.

For where the kernel's packet filter cannot tell a job's packets: no iptables, or a network namespace of the job's own.
The copy (``pidfd_getfd``) needs ptrace rights on the job's processes. A new connection is marked at the next look; what
was there before is put back at the end.

A class's DSCP is never what was there before: it was inherited from a marked socket that listens, left by an agent that
was killed, or claimed by the program. It is put back as that of other traffic, like the packet filter clears it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from controller.code_points import POOL_2
from host_reporter.discovery.processes import Held
from host_reporter.discovery.sockets.sock_diag import Socket
from host_reporter.procfs import is_alive

_PIDFD_GETFD = 438
_OVER_IPV4, _OVER_IPV6 = (socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
_OPTIONS = {socket.AF_INET: (_OVER_IPV4,), socket.AF_INET6: (_OVER_IPV4, _OVER_IPV6)}
"""A socket of IPv6 may talk over IPv4, and one that listens may do both. So both its options are set."""
_ECN = 0b11
"""These bits of the option's value belong to congestion control (RFC 3168)."""
_libc = ctypes.CDLL(None, use_errno=True)

_Key = tuple[int, int]
"""A socket's cookie and inode: older kernels count cookies by namespace."""

Holders = Callable[[Iterable[int]], Mapping[int, Held]]


class _Marked:
    __slots__ = ("before", "dscp", "held", "inode")

    def __init__(self, inode: int, held: Held, dscp: int, before: Sequence[int]) -> None:
        self.inode, self.held, self.dscp, self.before = inode, held, dscp, before


class SocketMarks:
    """The sockets that are marked, by job. For one thread. What fails is in ``trouble`` by job.

    ``points`` are the DSCPs of the classes or jobs.
    """

    def __init__(self) -> None:
        self.points = POOL_2
        self.trouble: dict[str, str] = {}
        self._jobs: dict[str, dict[_Key, _Marked]] = {}

    @property
    def jobs(self) -> frozenset[str]:
        """The jobs that have a marked socket."""
        return frozenset(self._jobs)

    def mark(self, job: str, dscp: int, sockets: Iterable[Socket], holders: Holders) -> None:
        """Mark these sockets of a job, and no others of it. Those that listen too: what they accept inherits it."""
        wanted = {(sock.cookie, sock.inode) for sock in sockets if sock.inode}
        marked = self._jobs.setdefault(job, {})
        for key in marked.keys() - wanted:
            self._put_back(marked.pop(key))
        todo = [key for key in wanted if key not in marked or marked[key].dscp != dscp]
        self.trouble.pop(job, None)
        if todo:
            held = holders([inode for _, inode in todo])
            for key in todo:
                if key[1] in held:
                    self._mark(job, key, held[key[1]], dscp)
        if not marked:
            del self._jobs[job]

    def unmark(self, job: str) -> None:
        """Put back what was there before, where the socket still lives."""
        for marked in self._jobs.pop(job, {}).values():
            self._put_back(marked)
        self.trouble.pop(job, None)

    def clear(self, sockets: Iterable[Socket], holders: Holders) -> None:
        """Take a class's DSCP from sockets that are not marked here: nobody would ever put them back."""
        ours = {key for marked in self._jobs.values() for key in marked}
        inodes = [sock.inode for sock in sockets if sock.inode and (sock.cookie, sock.inode) not in ours]
        for inode, held in (holders(inodes) if inodes else {}).items():
            try:
                _set_tos(held, inode, _each(self.points.other), only_if=self._class_tos())
            except OSError:
                # It has ended, or may not be touched; then neither could it have been marked.
                continue

    def _mark(self, job: str, key: _Key, held: Held, dscp: int) -> None:
        known, inode = self._jobs[job].get(key), key[1]
        try:
            before = _set_tos(held, inode, _each(dscp))
        except OSError as error:
            reason = error.strerror or str(error)
            if isinstance(error, PermissionError):
                reason += "; the agent needs CAP_SYS_PTRACE"
            self.trouble[job] = f"a socket of process {held.process.pid} cannot be marked: {reason}"
            return
        if before is not None:
            was = [self.points.other << 2 if tos & ~_ECN in self._class_tos() else tos for tos in before]
            self._jobs[job][key] = _Marked(inode, held, dscp, known.before if known is not None else was)

    def _class_tos(self) -> frozenset[int]:
        return frozenset(dscp << 2 for dscp in self.points.of_data)

    @staticmethod
    def _put_back(marked: _Marked) -> None:
        try:
            _set_tos(marked.held, marked.inode, marked.before, only_if={marked.dscp << 2})
        except OSError:
            # It has ended, and its sockets with it; or it may not be touched any more.
            return


def _each(dscp: int) -> list[int]:
    """The value for each option that a socket may have."""
    return [dscp << 2] * len(_OPTIONS[socket.AF_INET6])


def _set_tos(
    held: Held, inode: int, tos: Sequence[int], only_if: Container[int] | None = None
) -> tuple[int, ...] | None:
    """Set the TOS of a socket that a process holds; what it was. None: the socket is not there any more.

    ``tos`` has the value of each of the socket's options. ``only_if``: only where it still is one of these. Raises
    OSError.
    """
    try:
        process = os.pidfd_open(held.process.pid)
    except ProcessLookupError:
        return None
    try:
        # Now that the id cannot become another process's any more.
        if not is_alive(held.process):
            return None
        copy = _libc.syscall(_PIDFD_GETFD, process, held.descriptor, 0)
        if copy < 0:
            number = ctypes.get_errno()
            if number in (errno.EBADF, errno.ESRCH):
                return None
            raise OSError(number, os.strerror(number))
    finally:
        os.close(process)
    try:
        # The descriptor's number may be another file's by now.
        if os.fstat(copy).st_ino != inode:
            return None
        sock = socket.socket(fileno=copy)
        copy = -1
        with sock:
            options = _OPTIONS.get(sock.family, ())
            before = tuple(sock.getsockopt(*option) for option in options)
            for option, now, then in zip(options, before, tos, strict=False):
                if only_if is None or now & ~_ECN in only_if:
                    sock.setsockopt(*option, (then & ~_ECN) | (now & _ECN))
            return before
    finally:
        if copy >= 0:
            os.close(copy)

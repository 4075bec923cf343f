"""A job's process, real and unmodified: does as it is told on stdin, one step a line, and says so.

``connect ADDRESS PORT [SOURCE]``, ``listen ADDRESS PORT`` (a free one for 0; its number is said), ``accept``,
``send BYTES`` on the connection that was made last, ``fork`` (a child that goes on, while this one waits), ``orphan``
(the same, and this one ends soon), ``churn ADDRESS PORT COUNT`` (short connections), ``close``, ``tos``,
``claim DSCP``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from topologies import cgroups

_PROGRAM = r"""
import os, socket, sys, time
open_, servers = [], []
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    what, *rest = line.split()
    said = ""
    if what == "connect":
        source = (rest[2], 0) if len(rest) > 2 else ("127.0.0.1", 0) if rest[0].startswith("127.") else None
        open_.append(socket.create_connection((rest[0], int(rest[1])), 5, source_address=source))
        said = open_[-1].getsockname()[1]
    elif what == "listen":
        servers.append(socket.create_server((rest[0], int(rest[1]))))
        said = servers[-1].getsockname()[1]
    elif what == "accept":
        open_.append(servers[-1].accept()[0])
    elif what == "send":
        open_[-1].sendall(bytes(int(rest[0])))
    elif what == "close":
        open_.pop().close()
    elif what == "claim":
        open_[-1].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(rest[0]) << 2)
    elif what == "tos":
        over_ipv6 = open_[-1].family == socket.AF_INET6
        option = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if over_ipv6 else (socket.IPPROTO_IP, socket.IP_TOS)
        said = open_[-1].getsockopt(*option)
    elif what == "churn":
        for _ in range(int(rest[2])):
            with socket.create_connection((rest[0], int(rest[1])), 5) as short:
                short.sendall(b"x")
    elif what in ("fork", "orphan"):
        pid = os.fork()
        if pid:
            if what == "fork":
                os.waitpid(pid, 0)
            else:
                time.sleep(1.0)
            os._exit(0)
        said = os.getpid()
    print("done", said, flush=True)
"""


def in_group(group: Path) -> tuple[str, ...]:
    """What goes before a command, so that it is in a cgroup before all that it does."""
    return ("sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', str(group))


def second_hierarchy() -> Path | None:
    """Where cgroups of the second version can be made; None where they cannot."""
    mounted = cgroups.hierarchies(cgroups.MOUNTS.read_text())
    return next((at for at in mounted if (at / "cgroup.controllers").exists() and os.access(at, os.W_OK)), None)


class JobProcess:
    """The process; ``do`` a step and have its answer. ``prefix``: a command that becomes it. Closed as a context."""

    def __init__(self, *prefix: str) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-S", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = int(self._answer("ready"))

    def do(self, step: str) -> int:
        """Carry out a step; the number that it said, or 0."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()
        return int(self._answer("done") or 0)

    def _answer(self, word: str) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().split()
        assert line[:1] == [word], line
        return line[1] if len(line) > 1 else ""

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def end(self) -> None:
        """End it, and its children with it: their input is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

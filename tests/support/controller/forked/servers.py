"""Controllers of the tests as forks of two servers, by turns.

A start of a controller takes two seconds of a processor, nearly all of it for imports. The servers have imported them.
A controller that is started again is of the other server, where strings have other hashes, as in a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from evaluation.bench.support.api_client import Process, spawned
from tests.support.paths import ROOT

SERVERS = 2
SURROUNDINGS = ("PYTHON", "LD_", "OMP_", "OPENBLAS_")
"""Variables whose names begin so count only when a process starts, so a fork cannot have others than its server."""
LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_CORE)


class Forked:
    """A fork that is a controller. It has the methods of ``subprocess.Popen`` that the tests need."""

    def __init__(self, told: int) -> None:
        self._told = open(told, "rb", buffering=0)  # noqa: SIM115 - closed when its end is told
        self.returncode: int | None = None
        pid = self._line()
        assert pid is not None, "the fork server has ended"
        self.pid = pid

    def _line(self) -> int | None:
        line = self._told.readline()
        return int(line) if line else None

    def poll(self) -> int | None:
        """Returns the exit status; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit status when it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked controller", timeout or 0.0)
            status = self._line()
            self.returncode = -signal.SIGKILL if status is None else status
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # its end may be on its way
                os.kill(self.pid, number)


class Server:
    """A fork server that runs."""

    def __init__(self) -> None:
        self._orders, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            command = [sys.executable, "-m", "tests.support.controller.forked.server", str(far.fileno())]
            environment = os.environ | {"PYTHONWARNINGS": "ignore"}
            self._process = subprocess.Popen(
                command, pass_fds=[far.fileno()], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL
            )

    def begin(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Start a controller whose output is appended to a file."""
        order = {"command": list(command), "environment": dict(environment), "folder": str(Path.cwd())}
        told, tell = os.pipe()
        try:
            with log.open("ab") as out:
                socket.send_fds(self._orders, [json.dumps(order).encode()], [out.fileno(), tell])
        finally:
            os.close(tell)
        return Forked(told)

    def close(self) -> None:
        """End it, and the controllers that have not ended."""
        self._orders.close()
        self._process.wait()


def surroundings() -> dict[str, str]:
    """Returns what a fork has of its server, and a process of its own of who starts it."""
    found = {name: value for name, value in os.environ.items() if name.startswith(SURROUNDINGS)}
    found |= {kind.name: str(kind.readlink()) for kind in Path("/proc/thread-self/ns").iterdir()}
    return found | {f"limit {kind}": str(resource.getrlimit(kind)) for kind in LIMITS}


class Servers:
    """The fork servers, which are started when they are needed."""

    def __init__(self) -> None:
        self._surroundings = surroundings()
        self._servers: list[Server] = []
        self._begun = 0

    def begin(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
        """Start a controller: a fork where that makes no difference, else a process of its own."""
        if Path(command[0]).name != "ryu-manager" or surroundings() != self._surroundings:
            return spawned(command, environment, log)
        number, self._begun = self._begun % SERVERS, self._begun + 1
        if number == len(self._servers):
            self._servers.append(Server())
        return self._servers[number].begin(command, environment, log)

    def close(self) -> None:
        """End all of them."""
        for server in self._servers:
            server.close()


@contextmanager
def fork_servers() -> Iterator[Servers]:
    """Yields fork servers, and ends them afterwards."""
    with ExitStack() as stack:
        servers = Servers()
        stack.callback(servers.close)
        yield servers

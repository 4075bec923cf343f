"""Many processes of the same two programs, a host each, for the price of one import.

Thirteen agents and thirteen trainers that each start a Python of their own keep one processor busy for half a
minute. A launcher imports both programs once; a process on a host is a fork of it that enters the host's namespaces.

The launcher reads orders from stdin and tells of starts and ends on stdout, in JSON lines; at the end of its
input it ends, and what it has started gets SIGTERM.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from topologies import cgroups
from topologies.errors import LabError

Program = Literal["reporter", "trainer", "job"]
"""The first two are this launcher's; the last is that of ``evaluation.sasp.fork_server``."""
_NAMESPACES = ("net", "mnt")
_POLL_SECONDS = 0.1


class CrewError(LabError):
    """The launcher does not do its work; the message says what it said."""


class Member:
    """One process of the crew, with the part of ``subprocess.Popen``'s manners that its users need."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.pid: int | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status (negative: the signal); None while it runs."""
        if self.returncode is None and not self._crew.alive:
            self.returncode = -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None and self.pid is not None:
            # The news of its end may be on the way.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(_POLL_SECONDS / 2)
        return status


class Crew:
    """The launcher, seen from the lab. ``launcher`` runs this module, or one that calls ``launch``, with pipes for
    stdin and stdout; ``patience``: seconds that it may take to answer."""

    def __init__(self, launcher: subprocess.Popen[bytes], patience: float = 60.0) -> None:
        self._launcher = launcher
        self._patience = patience
        self._members: list[Member] = []
        self._told = threading.Condition()
        self._silent = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether the launcher runs."""
        # Its end of the pipe is gone a moment before its status is there.
        return not self._silent and self._launcher.poll() is None

    def check(self) -> None:
        """Raises CrewError where the launcher has ended."""
        if not self.alive:
            raise CrewError("the launcher of agents and trainers has ended")

    def start(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        namespaces_of: int,
        log: Path,
        folder: Path,
        cgroup: Path | None = None,
    ) -> Member:
        """Start a program in the namespaces of a process, its output appended to ``log``; returns when it runs.

        With ``cgroup`` it is in that group from before it runs. Raises CrewError.
        """
        self.check()
        member = Member(self)
        with self._told:
            number = len(self._members)
            self._members.append(member)
        order = {
            "number": number,
            "program": program,
            "arguments": list(arguments),
            "namespaces_of": namespaces_of,
            "log": str(log),
            "folder": str(folder),
            "cgroup": None if cgroup is None else str(cgroup),
        }
        assert self._launcher.stdin is not None
        try:
            self._launcher.stdin.write(json.dumps(order).encode() + b"\n")
            self._launcher.stdin.flush()
        except OSError as error:
            raise CrewError(f"the launcher of agents and trainers takes no orders: {error.strerror}") from error
        with self._told:
            if not self._told.wait_for(lambda: member.pid is not None or not self.alive, timeout=self._patience):
                raise CrewError("the launcher of agents and trainers does not answer")
        if member.pid is None:
            self.check()
        return member

    def close(self) -> None:
        """Let the launcher end, and with it the crew; returns when it has."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        # An order that a dead launcher did not take is still in the buffer.
        with contextlib.suppress(OSError):
            self._launcher.stdin.close()
        self._launcher.wait()
        self._listener.join()
        self._launcher.stdout.close()

    def _listen(self) -> None:
        assert self._launcher.stdout is not None
        for line in self._launcher.stdout:
            if not line.endswith(b"\n"):
                break
            news = json.loads(line)
            with self._told:
                member = self._members[news["number"]]
                member.pid = news.get("pid", member.pid)
                member.returncode = news.get("status", member.returncode)
                self._told.notify_all()
        with self._told:
            self._silent = True
            self._told.notify_all()


def main() -> None:
    """The launcher."""
    # Both programs, and all that they need, are in memory before the first fork.
    from host_reporter import agent  # noqa: PLC0415 - as above
    from host_reporter.nic import tensorlights_nic  # noqa: F401, PLC0415 - as above
    from topologies.trainer import __main__ as trainer  # noqa: PLC0415 - as above

    launch({"reporter": agent.main, "trainer": trainer.main})


def launch(programs: Mapping[str, Callable[[], int | None]]) -> None:
    """Start programs as they are ordered on stdin, until that ends."""
    # What is there now is there for good: a collection in a fork would copy all of it.
    gc.freeze()
    children: dict[int, int] = {}
    rest = b""
    while True:
        _tell_ends(children)
        ready, _, _ = select.select([0], [], [], _POLL_SECONDS)
        if not ready:
            continue
        data = os.read(0, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                _enter(order)
                sys.exit(programs[order["program"]]())
            children[pid] = order["number"]
            _tell({"number": order["number"], "pid": pid})
    for pid in children:
        os.kill(pid, signal.SIGTERM)


def _enter(order: Mapping[str, Any]) -> None:
    """Become a process of its own on a host: session, streams, group, namespaces, folder, arguments, chance."""
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    if order["cgroup"] is not None:
        # Here, where the hierarchy is mounted: a host's own /sys hides it.
        cgroups.join(Path(order["cgroup"]))
    library = ctypes.CDLL(None, use_errno=True)
    for name in _NAMESPACES:
        namespace = os.open(f"/proc/{order['namespaces_of']}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if library.setns(namespace, 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the {name} namespace")
        os.close(namespace)
    os.chdir(order["folder"])
    sys.argv = [order["program"], *order["arguments"]]
    random.seed()


def _tell_ends(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _tell({"number": children.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def _tell(news: Mapping[str, int]) -> None:
    os.write(1, json.dumps(news).encode() + b"\n")


if __name__ == "__main__":
    main()

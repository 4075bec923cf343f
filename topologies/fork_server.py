"""A fork server: it imports two programs once and starts them many times, each time on an emulated host.

Thirteen agents and thirteen trainers that each start a Python of their own keep one processor busy for half a
minute. The launcher imports both programs once. A process on a host is a fork of the launcher that enters the host's
namespaces.

The launcher reads orders from stdin and reports starts and ends on stdout, in JSON lines. It ends at the end of its
input, and sends SIGTERM to the processes that it has started.
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
"""This launcher starts the first two. The launchers of ``evaluation.sasp`` and ``evaluation.real`` start jobs."""
_NAMESPACES = ("net", "mnt")
_POLL_SECONDS = 0.1


class ForkServerError(LabError):
    """The launcher does not do its work. The message says what is wrong."""


class ForkedProcess:
    """One process that the launcher started. It has the methods of ``subprocess.Popen`` that its users need."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self.pid: int | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status (negative: the signal); None while it runs."""
        if self.returncode is None and not self._fork_server.alive:
            self.returncode = -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None and self.pid is not None:
            # The report of its end may be on the way.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait until the process has ended, and return its status. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(_POLL_SECONDS / 2)
        return status


class ForkServer:
    """The launcher, as the lab uses it.

    ``launcher`` runs this module, or another one that calls ``launch``, with pipes for stdin and stdout. It may take
    ``patience`` seconds to answer.
    """

    def __init__(self, launcher: subprocess.Popen[bytes], patience: float = 60.0) -> None:
        self._launcher = launcher
        self._patience = patience
        self._processes: list[ForkedProcess] = []
        self._changed = threading.Condition()
        self._silent = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether the launcher runs."""
        # The launcher's end of the pipe closes a moment before its exit status is known.
        return not self._silent and self._launcher.poll() is None

    def check(self) -> None:
        """Raises ForkServerError where the launcher has ended."""
        if not self.alive:
            raise ForkServerError("the launcher of agents and trainers has ended")

    def start(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        namespaces_of: int,
        log: Path,
        folder: Path,
        cgroup: Path | None = None,
    ) -> ForkedProcess:
        """Start a program in the namespaces of a process, and return when it runs. Its output is appended to ``log``.

        With ``cgroup`` the process joins that group before it does anything else. Raises ForkServerError.
        """
        self.check()
        process = ForkedProcess(self)
        with self._changed:
            number = len(self._processes)
            self._processes.append(process)
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
            raise ForkServerError(
                f"the launcher of agents and trainers takes no more orders: {error.strerror}"
            ) from error
        with self._changed:
            if not self._changed.wait_for(lambda: process.pid is not None or not self.alive, timeout=self._patience):
                raise ForkServerError("the launcher of agents and trainers does not answer")
        if process.pid is None:
            self.check()
        return process

    def close(self) -> None:
        """End the launcher and the processes that it has started, and return when the launcher has ended."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        # An order that a dead launcher did not read is still in the buffer.
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
            report = json.loads(line)
            with self._changed:
                process = self._processes[report["number"]]
                process.pid = report.get("pid", process.pid)
                process.returncode = report.get("status", process.returncode)
                self._changed.notify_all()
        with self._changed:
            self._silent = True
            self._changed.notify_all()


def main() -> None:
    """Run the launcher of agents and trainers."""
    # Both programs, and all that they import, are in memory before the first fork.
    import encodings.idna  # noqa: F401, PLC0415 - the first connection to a name needs it

    from host_reporter import agent  # noqa: PLC0415 - as above
    from host_reporter.nic.tensorlights import nic  # noqa: F401, PLC0415 - as above
    from topologies.trainer import __main__ as trainer  # noqa: PLC0415 - as above

    launch({"reporter": agent.main, "trainer": trainer.main})


def launch(programs: Mapping[str, Callable[[], int | None]]) -> None:
    """Start programs as stdin orders, until stdin ends."""
    # All that is in memory now stays for good. A garbage collection in a fork would copy all of it.
    gc.freeze()
    children: dict[int, int] = {}
    rest = b""
    while True:
        _report_ends(children)
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
            _report({"number": order["number"], "pid": pid})
    for pid in children:
        os.kill(pid, signal.SIGTERM)


def _enter(order: Mapping[str, Any]) -> None:
    """Make this fork a process of the host: session, streams, cgroup, namespaces, folder, arguments, random seed."""
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    if order["cgroup"] is not None:
        # This comes before the namespaces: a host's own /sys hides the hierarchy.
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


def _report_ends(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _report({"number": children.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def _report(report: Mapping[str, int]) -> None:
    os.write(1, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main()

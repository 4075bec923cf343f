"""Restores the interface where the agent is killed before it can do so.

A shell reads from a pipe until the agent writes that it has removed everything. Where the pipe closes without that
word, the shell runs this program, which removes the queues of TensorLights, and the plan's tree if an agent built it.
The shell has a session of its own. If it is killed too, the next agent does the same when it starts or stops. A reboot
removes all queues, and the agent keeps no file about them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from host_reporter import tools
from host_reporter.nic.errors import NicError

_DONE = "done"
_END_SECONDS = 2.0
_SCRIPT = f"""trap '' INT TERM HUP; read -r word; [ "$word" = {_DONE} ] || exec "$0" -m host_reporter.nic.guard "$1" """


class NicGuard:
    """The guard of one interface. It is not thread-safe."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """Start the guard, unless it runs. Call this before the first change of the interface. Raises NicError."""
        if self._process is not None and self._process.poll() is None:
            return
        self._forget()
        # The agent may run from a checkout, and the guard starts in another folder: it must find the package too.
        paths = [str(Path(__file__).resolve().parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        try:
            self._process = tools.start(
                ["/bin/sh", "-c", _SCRIPT, sys.executable, self._interface],
                cwd="/",
                environment={"PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            )
        except tools.ToolError as error:
            raise NicError(f"no guard, which would take it away if the agent were killed: {error}") from error

    def dismiss(self) -> None:
        """End the guard after the interface was restored."""
        if self._process is not None and self._process.poll() is None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"{_DONE}\n".encode())
                self._process.stdin.flush()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        self._forget()

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.poll()


def main() -> int:
    """Restore an interface after the agent's end. The exit status is 1 where that fails, and 2 for wrong arguments."""
    from host_reporter.nic.interface import Nic  # noqa: PLC0415 - it imports this module
    from host_reporter.nic.tensorlights.nic import TensorLightsNic  # noqa: PLC0415 - it loads pyroute2

    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m host_reporter.nic.guard INTERFACE\n")
        return 2
    interface = sys.argv[1]
    try:
        # TensorLights may have its leaves in the plan's tree, so it is removed first.
        is_left = TensorLightsNic(interface, 0.0).remove()
        is_left |= Nic(interface, None).remove_left()
    except NicError as error:
        sys.stderr.write(f"host-reporter: the agent was killed, and its bands cannot be taken away: {error}\n")
        return 1
    if is_left:
        sys.stderr.write(f"host-reporter: the agent was killed; its bands are taken away from {interface}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

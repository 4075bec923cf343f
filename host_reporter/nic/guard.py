"""Gives the interface back where the agent ends without doing so: killed, or out of memory.

A shell waits for the agent's word that all is taken away. Where the agent's end of the pipe closes without that word,
it becomes this program, which takes away what TensorLights has put there, and the plan's tree if an agent made it. It
lives in a session of its own; if it is killed too, the next agent does the same when it starts or stops. After a reboot
nothing is there, and no file says otherwise.
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
    """The guard of one interface. Not for several threads."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """From now on there is something to take away; a guard that was ended begins anew. Raises NicError."""
        if self._process is not None and self._process.poll() is None:
            return
        self._forget()
        # The agent may run where the package is not installed, and the guard begins in another folder.
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
        """All is taken away: let it end."""
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
    """Give an interface back, after the agent's end. Exit status 1: it could not be; 2: none was named."""
    from host_reporter.nic.interface import Nic  # noqa: PLC0415 - which imports this
    from host_reporter.nic.tensorlights_nic import TensorLightsNic  # noqa: PLC0415 - only now is it needed

    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m host_reporter.nic.guard INTERFACE\n")
        return 2
    interface = sys.argv[1]
    try:
        # TensorLights may be a guest in the other's tree.
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

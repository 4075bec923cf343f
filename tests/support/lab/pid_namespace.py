"""A PID namespace, so that an emulated host has processes of its own, as a machine has.

Emulated hosts share the machine's processes: an agent that finds jobs by their processes would find those of all hosts.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evaluation.bench.support.waiting import wait_until
from host_reporter import procfs

Start = Callable[[Sequence[str]], "subprocess.Popen[Any]"]


class PidNamespace:
    """Processes that see each other alone, with a /proc of their own. All of them end with ``close``.

    ``start`` starts a command, such as in a host's network. What is started by ``inside`` is in that network, too.
    """

    def __init__(self, start: Start) -> None:
        self._outside = start(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "infinity"])
        found: list[int] = []
        try:
            wait_until(lambda: found or found.extend(self._first()) or found, 10, what="the first process inside")
        except BaseException:
            self.close()
            raise
        self._pid = found[0]

    def inside(self, *command: str) -> list[str]:
        """Returns the command that runs this one inside."""
        spaces = ("--pid", "--mount", "--net")
        return ["nsenter", f"--target={self._pid}", *spaces, f"--wdns={Path.cwd()}", "--", *command]

    def close(self) -> None:
        """End all that runs inside."""
        self._outside.kill()
        self._outside.wait()

    def _first(self) -> list[int]:
        """Returns the first process inside, once it has its own /proc; before, it still is unshare."""
        present = [int(folder.name) for folder in Path(procfs.PROC).iterdir() if folder.name.isdigit()]
        return [pid for pid in present if _parent(pid) == self._outside.pid and _name(pid) == "sleep"]


def _parent(pid: int) -> int | None:
    state = procfs.state_of(pid)
    return state.parent if state is not None else None


def _name(pid: int) -> str:
    try:
        return Path(f"{procfs.PROC}/{pid}/comm").read_text().strip()
    except OSError:
        return ""

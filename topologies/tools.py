"""One way to run a command-line tool, such as ip, tc, ovs-vsctl or ethtool."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence


def run(
    command: Sequence[str], *, lines: Iterable[str] | None = None, check: bool = True, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end and return its output and status.

    ``lines`` are the tool's standard input, one command each, as ``ip -batch -`` and ``tc -batch -`` read them; without
    them the tool has no input. A tool that runs for more than ``timeout`` seconds is killed. Raises
    subprocess.CalledProcessError where ``check`` is set and the tool fails, subprocess.TimeoutExpired, and
    FileNotFoundError where the tool is not installed; ``topologies.errors.one_line_errors`` makes each a LabError.
    """
    text = None if lines is None else "".join(f"{line}\n" for line in lines)
    stdin = subprocess.DEVNULL if text is None else None
    return subprocess.run(
        command, input=text, stdin=stdin, capture_output=True, text=True, check=check, timeout=timeout
    )

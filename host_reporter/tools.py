"""Runs the tools of the system, such as ``tc`` and ``iptables-restore``: every process of the agent is started here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

RUN_SECONDS = 20.0
"""End a tool that runs longer than this."""

MAX_COMPLAINT = 300
"""Repeat at most this many characters of a tool's error message."""


class ToolError(RuntimeError):
    """A tool cannot be run, or has failed. The message says why."""


def run(command: Sequence[str], text: str = "", *, package: str) -> str:
    """Give a tool ``text`` as its input and wait for its end. Returns what it prints.

    ``package`` is the package that has the tool, for the message of an error. Raises ToolError.
    """
    try:
        completed = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",  # what other programs have written into the kernel's tables may be in any encoding
            check=True,
            timeout=RUN_SECONDS,
        )
    except OSError as error:
        raise ToolError(_reason(command[0], error, package)) from error
    except subprocess.CalledProcessError as error:
        raise ToolError(complaint(error.stderr) or f"{command[0]} ended with status {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{command[0]} did not end within {RUN_SECONDS:g} s") from error
    return completed.stdout


def start(
    command: Sequence[str],
    *,
    package: str = "",
    stdout: int | None = None,
    stderr: int | None = None,
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a tool that stays, in a session of its own, and that reads from a pipe. Raises ToolError."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=os.environ | dict(environment or {}),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(_reason(command[0], error, package)) from error


def complaint(output: str) -> str:
    """Returns a tool's error message in one line, of at most ``MAX_COMPLAINT`` characters."""
    return " ".join(output.split())[:MAX_COMPLAINT]


def _reason(tool: str, error: OSError, package: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{tool} is not installed" + (f"; install the package {package}" if package else "")
    if isinstance(error, PermissionError):
        return f"{tool} may not be run; the agent needs CAP_NET_ADMIN"
    return f"{tool} cannot be run: {error.strerror}"

"""Processes as launchers start them: an environment, a user, and where the output goes. They only sleep."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from evaluation.bench.support.waiting import wait_until

PATH = os.environ["PATH"]


def unique(name: str = "job") -> str:
    """Returns a name that no other test on this machine has: /proc shows all of them."""
    return f"{name}{secrets.token_hex(4)}"


@contextmanager
def started(
    environment: Mapping[str, str],
    command: Sequence[str] = ("sleep", "600"),
    *,
    user: int | None = None,
    out: IO[Any] | int = subprocess.DEVNULL,
    errors: IO[Any] | int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with this environment alone, and end it."""
    process = subprocess.Popen(
        command, env={"PATH": PATH, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, user=user,
        group=user, extra_groups=[] if user is not None else None, start_new_session=True,
    )  # fmt: skip
    try:
        # While the program is being loaded, nobody may look at its environment.
        wait_until(lambda: _has_begun(process.pid), 10, what="its program is loaded")
        yield process
    finally:
        end(process)


def _has_begun(pid: int) -> bool:
    try:
        return b"PATH=" in Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return False
    except FileNotFoundError:
        return True


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()

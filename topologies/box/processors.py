"""Gives one process and its children a processor of their own, and real-time priority to those that must not wait.

The kernel of a User-Mode Linux box follows its processes step by step (ptrace): it and they never run at once. On one
processor each step is a switch; on two it is a message to a processor that sleeps, which takes twice as long and more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def own_processor() -> Iterator[int | None]:
    """Yield the number of a free processor; None where all that this process may use are taken."""
    with contextlib.ExitStack() as stack:
        yield next(
            (number for number in sorted(os.sched_getaffinity(0), reverse=True) if _lock_processor(number, stack)), None
        )


def run_on(process: int, processor: int | None) -> None:
    """Keep a process, and all that it starts from now on, on one processor. None means any processor."""
    if processor is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process, {processor})


def at_once() -> tuple[str, ...]:
    """Returns a command prefix for a process that has a machine of its own in reality, and so must never wait.

    It sets real-time scheduling, or the highest priority where that is not allowed.
    """
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, policy, priority)
    except OSError:
        return ("nice", "-n", "-10")
    return ("chrt", "--rr", "1")


def _lock_processor(number: int, stack: contextlib.ExitStack) -> bool:
    """Lock a processor until ``stack`` ends or this process dies. Returns whether this succeeded."""
    lock = Path(tempfile.gettempdir()) / f"trainyard-{os.geteuid()}-processor-{number}.lock"
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    stack.callback(os.close, descriptor)
    return True

"""Why no output of a found job can be read, and what a person can do about it."""

from __future__ import annotations

from host_reporter.jobs.found.descriptors import target_of

HELP = (
    "redirect its output to a file (an end like '| tee FILE' in the same shell line is found, too), name a file of its "
    "metrics in a job file, or report its progress by the two-line helper"
)
"""What helps with every job whose output is in no file."""

_DEVICES = {"/dev/null": "/dev/null", "/dev/tty": "a terminal", "/dev/console": "a terminal"}


def why_silent(pid: int) -> str:
    """Returns what is to be said of a job whose process prints into no file that can be read."""
    return f"no file has its output (it prints to {_end_of(target_of(pid, 1))}), so only its traffic is known; {HELP}"


def _end_of(target: str | None) -> str:
    """Returns where a standard output ends, for people. ``target`` is what is behind the descriptor."""
    if target is None:
        return "nothing: its standard output is closed"
    if target.startswith("pipe:"):
        return "a pipe, whose reader keeps it in no file that can be followed"
    if target.startswith("socket:"):
        return "a socket"
    if target.startswith(("/dev/pts/", "/dev/tty")):
        return "a terminal"
    return _DEVICES.get(target, "what is no ordinary file, or may not be read by its user")

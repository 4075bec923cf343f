"""The capabilities of this process, and what each is needed for (capabilities(7))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from host_reporter.check.verdict import Verdict, missing, note, ok
from host_reporter.options import Options

CHECK = "rights"
STATUS = Path("/proc/self/status")
NUMBERS = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21}
_EFFECTIVE = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)


def check(options: Options) -> Iterator[Verdict]:
    """Yields whether the agent may do what its options ask for."""
    yield from verdicts(_held(STATUS.read_text(encoding="ascii", errors="replace")), options)


def verdicts(held: frozenset[str], options: Options) -> Iterator[Verdict]:
    """Yields a verdict for each use of a capability. ``held`` are those of this process."""
    for name, use, is_needed in _uses(options):
        if name in held:
            yield ok(CHECK, f"{name} is there: {use}")
        elif is_needed:
            yield missing(CHECK, f"{name} is not there: {use}", f"run the agent as root, or give it {name}")
        else:
            yield note(CHECK, f"{name} is not there: {use}", f"give the agent {name}, if you need this")


def _uses(options: Options) -> Iterator[tuple[str, str, bool]]:
    """Yields capabilities, what each is for, and whether the options ask for that."""
    if options.marking:
        yield "CAP_NET_ADMIN", "to mark packets by iptables", True
        yield "CAP_NET_RAW", "iptables asks for it", True
    for each in options.ordered:
        yield "CAP_NET_ADMIN", f"to order the interface {each.name} (tc)", True
    if options.enrol_token_file is not None:
        yield "CAP_NET_RAW", "to be found at its switch while the host enrols", False
    yield "CAP_SYS_PTRACE", "to find and mark the sockets of other users' processes", False
    yield "CAP_SYS_ADMIN", "to find the sockets of containers in network namespaces of their own", False


def _held(status: str) -> frozenset[str]:
    match = _EFFECTIVE.search(status)
    mask = int(match[1], 16) if match is not None else 0
    return frozenset(name for name, number in NUMBERS.items() if mask >> number & 1)

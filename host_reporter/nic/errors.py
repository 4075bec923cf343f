"""The error of the host's interface."""

from __future__ import annotations


class NicError(RuntimeError):
    """The interface cannot be managed; the message says why and what would help."""


def foreign(interface: str, kind: str, handle: str) -> NicError:
    """Returns the error of an interface that has a qdisc of another program."""
    return NicError(
        f"{interface} already has a {kind} qdisc ({handle}) that is not ours: left alone; remove it to let the agent "
        "order this host's traffic"
    )

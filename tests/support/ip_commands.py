"""Many commands of ``ip`` by one start of it."""

from __future__ import annotations

from collections.abc import Sequence

from topologies import tools


def ip(*arguments: str, lines: Sequence[str]) -> None:
    """Run ``ip`` with commands, one a line."""
    tools.run(["ip", *arguments, "-batch", "-"], lines=lines)

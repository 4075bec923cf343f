"""Records of what is changed at the controller's machine itself, without a request: by a signal or in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.access.audit.facts import differing, plain
from controller.access.tokens.file import TokensRead
from controller.process.renewal import Renewed

ROLE = "machine"
"""Who may write the controller's files and send it signals. The machine asks for the proof, not the controller."""


class MachineAudit:
    """Hands the records to ``add``. ``machine`` is the name of the controller's machine."""

    def __init__(self, add: Callable[[Mapping[str, Any]], None], machine: str) -> None:
        self._add = add
        self._machine = machine

    def tokens_read(self, read: TokensRead) -> None:
        """Add the record of a tokens file that was read again."""
        self._add_change({"who": "file", "action": "tokens", "path": str(read.path)}, read)

    def renewed(self, renewed: Renewed) -> None:
        """Add the record of certificates that were read again."""
        self._add_change({"who": "signal", "action": "certificates"}, renewed)

    def _add_change(self, what: Mapping[str, Any], change: TokensRead | Renewed) -> None:
        content = {"role": ROLE, "address": self._machine, **what}
        if change.problem is not None:
            self._add(content | {"outcome": "refused", "detail": plain(change.problem)})
        elif change.before != change.after:
            before, after = differing(change.before, change.after)
            self._add(content | {"outcome": "done", "before": before, "after": after})

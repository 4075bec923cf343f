"""The lines that were not understood stay on this host: they may hold a secret.

They go to a logger of their own, which has no handler unless the agent opens a file for it (0600).
"""

from __future__ import annotations

import logging

log = logging.getLogger("host_reporter.unread")
log.propagate = False
log.addHandler(logging.NullHandler())


def note(shown: str, line: str) -> None:
    """Note a line of a file."""
    log.info("%s: not understood: %s", shown, "".join(char if char.isprintable() else "?" for char in line))

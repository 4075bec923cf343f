"""The lines that were not understood stay on this host: they may hold a secret.

They go to a logger of their own, which writes nowhere unless the agent opens a file for it, which its owner alone can
read.
"""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from host_reporter.formats.outputs.advice import suggestion

MAX_FILE_BYTES = 2**20
"""Begin the file anew when it has so many bytes; the one before is kept beside it."""

log = logging.getLogger("host_reporter.unread")
log.propagate = False
log.addHandler(logging.NullHandler())


def note(shown: str, line: str) -> None:
    """Note a line of a file, with a pattern that would match it, if there is one."""
    if not log.isEnabledFor(logging.INFO):
        return
    pattern = suggestion(line)
    advice = f"; this pattern would match: {pattern}" if pattern is not None else ""
    log.info("%s: not understood: %s%s", shown, _printable(line), _printable(advice))


def open_file(path: Path) -> logging.Handler:
    """Let the lines be written to a file. Returns the handler, to be closed with ``close_file``. Raises OSError."""
    handler = _OwnerOnly(path, maxBytes=MAX_FILE_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    return handler


def close_file(handler: logging.Handler) -> None:
    """Let the lines be written no longer."""
    log.removeHandler(handler)
    handler.close()


class _OwnerOnly(RotatingFileHandler):
    """Opens its file so that others can neither read it nor lead it elsewhere by a link."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)

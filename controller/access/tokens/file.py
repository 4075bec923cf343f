"""Reads the tokens file, at the start and whenever it has changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.access.tokens.entries import TokenTable, parse
from controller.documents import text_file
from controller.documents.document import DocumentError
from controller.documents.mapping_file import ConfigError
from controller.documents.yaml_lines import read_yaml

LOG = logging.getLogger("trainyard.access")
MAX_BYTES = 2**20
CHECK_SECONDS = 1.0
"""A changed file is in force at the first request after this time."""


def read_tokens(path: Path, hosts: Collection[str]) -> TokenTable:
    """Returns the entries of a file. ``hosts`` are those in the settings. Raises ConfigError, with a line a fault."""
    try:
        document = read_yaml(text_file.read(path, most_bytes=MAX_BYTES))
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None
    except DocumentError as error:
        raise ConfigError(f"{path}:{error.line or 1}: {error}") from None
    entries, faults = parse(document, hosts)
    if faults:
        lines = document.lines([at for at, _ in faults])
        raise ConfigError(
            "\n".join(
                f"{path}:{line}: {'.'.join(map(str, at))}: {said}" if at else f"{path}:{line}: {said}"
                for (at, said), line in zip(faults, lines, strict=True)
            )
        )
    return TokenTable(entries)


@dataclass(frozen=True)
class TokensRead:
    """A changed tokens file was read: what it said of its entries before, and says now, without hashes.

    ``problem``: why it is wrong, so that what was before stays in force.
    """

    path: Path
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    problem: str | None = None


def _ignore(_read: TokensRead) -> None:
    """Tell nobody."""


class TokensFile:
    """A tokens file and the table that is in force. Raises ConfigError if the file is wrong at the start.

    A file that is wrong later, or gone, leaves the last good table in force, and the log says so. ``tell`` is called
    each time it was read again.
    """

    def __init__(
        self,
        path: Path,
        hosts: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[TokensRead], None] = _ignore,
    ) -> None:
        self._path = path
        self._hosts = hosts
        self._clock = clock
        self._tell = tell
        self._stamp = self._stamped()
        self._table = read_tokens(path, hosts)
        self._checked_at = clock()

    def table(self) -> TokenTable:
        """Returns the table in force. At most once a second this looks whether the file has changed."""
        if self._clock() - self._checked_at >= CHECK_SECONDS:
            self._checked_at = self._clock()
            if self._stamped() != self._stamp:
                self.reload()
        return self._table

    def reload(self) -> bool:
        """Read the file again. Returns whether it was right, and so is in force."""
        self._stamp = self._stamped()
        before = self._table.facts
        try:
            self._table = read_tokens(self._path, self._hosts)
        except ConfigError as error:
            LOG.error("the tokens file is wrong, and the tokens of before stay in force: %s", error)
            self._tell(TokensRead(self._path, before, before, str(error)))
            return False
        LOG.info("%s was read: %d entries", self._path, len(self._table))
        self._tell(TokensRead(self._path, before, self._table.facts))
        return True

    def _stamped(self) -> tuple[int, int, int] | None:
        """Returns what changes when the file does; None where there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

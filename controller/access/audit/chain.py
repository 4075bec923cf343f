"""The growing end of an audit's chain: which record comes next, and in which file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from controller.access.audit.record import BEGINNING, FILE, Link, link


class Line(NamedTuple):
    """A line to be written. ``oldest``: a new file begins with it, and files without this record or a later one go."""

    link: Link
    data: bytes
    oldest: int | None = None


@dataclass
class Chain:
    """The end of a chain, after its record ``number`` with ``hash``.

    ``starts`` are the numbers of the first records of the files that are there, the present one last. A file gets no
    more records once they would make it larger than ``max_bytes``; ``keep`` is how many older files stay (None: all).
    ``oldest`` is the oldest record that this chain has not deleted. It says nothing of files that others have removed.
    """

    max_bytes: int
    keep: int | None
    number: int = 0
    hash: str = BEGINNING
    file_bytes: int = 0
    starts: list[int] = field(default_factory=list)
    oldest: int = 1

    def add(self, content: Mapping[str, Any]) -> list[Line]:
        """Returns the line of a record, after the line that begins a new file if it needs one.

        ``content`` has the time of the record as ``time``.
        """
        made, data = link(content, self.number + 1, self.hash)
        lines = []
        if not self.starts or self.file_bytes + len(data) > self.max_bytes:
            lines.append(self._begin_file(content["time"]))
            made, data = link(content, self.number + 1, self.hash)
        self._append(made, data)
        return [*lines, Line(made, data)]

    def _begin_file(self, now: float) -> Line:
        first = self.number + 1
        if self.keep is not None and len(self.starts) > self.keep:
            self.starts = [*self.starts[len(self.starts) - self.keep :], first]
            self.oldest = self.starts[0]
        else:
            self.starts.append(first)
        content = {"time": now, "who": "trainyard", "role": "controller", "action": FILE, "outcome": "done"}
        made, data = link(content | {"after": {"oldest": self.oldest}}, first, self.hash)
        self.file_bytes = 0
        self._append(made, data)
        return Line(made, data, self.oldest)

    def _append(self, made: Link, data: bytes) -> None:
        self.number, self.hash = made.number, made.hash
        self.file_bytes += len(data)

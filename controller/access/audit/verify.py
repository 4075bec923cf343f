"""Checks the chain of an audit: where it breaks, and what is missing in it. Pure.

A line that a crash has cut off is no break: the record in it was never complete, and the next one goes on from the last
complete one. Neither are files that the controller itself has deleted: each file begins with a record that names the
oldest record that was kept then. A record that was changed, taken out or put elsewhere is a break.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.access.audit.record import BEGINNING, FILE, Link, read

SHOWN = 20
"""Name at most this many breaks."""


@dataclass(frozen=True)
class Verdict:
    """The result. ``breaks`` say where the chain is broken, ``notes`` what a reader should know of a chain that is not.

    ``hashes`` are those of all records; ``first`` and ``last`` are the records at the ends, or None without any.
    """

    records: int
    first: Link | None
    last: Link | None
    breaks: tuple[str, ...]
    notes: tuple[str, ...]
    hashes: frozenset[str]


class Verifier:
    """Gets the lines of an audit in their order, file by file, and comes to a verdict."""

    def __init__(self) -> None:
        self._records = 0
        self._first: Link | None = None
        self._last: Link | None = None
        self._oldest_kept = 1
        self._unread: list[str] = []
        """The places of lines that are no records, since the last record."""
        self._is_cut_off = False
        self._breaks: list[str] = []
        self._notes: list[str] = []
        self._hashes: set[str] = set()

    def add_file(self, name: str, lines: Iterable[bytes]) -> None:
        """Check the lines of the next file, each with its line feed if it has one."""
        for row, line in enumerate(lines, 1):
            found = read(line.removesuffix(b"\n"))
            if found is not None:
                self._accept(found, f"{name}:{row}")
            elif line.strip():
                self._unread.append(f"{name}:{row}")
                self._is_cut_off = not line.endswith(b"\n")

    def verdict(self) -> Verdict:
        """Returns what the lines so far show."""
        breaks, notes = list(self._breaks), list(self._notes)
        unread = list(self._unread)
        if unread and self._is_cut_off:
            # Only the last line of all can have no line feed.
            notes.append(f"{unread.pop()}: the line is cut off, as a crash leaves it; its record is lost")
        breaks += [f"{place}: the line is not as it was written" for place in unread]
        if self._first is not None and self._first.number > 1:
            gone = _records(1, self._first.number - 1)
            if self._first.number <= self._oldest_kept:
                notes.append(f"{gone} not here: the controller has deleted old files (audit.keep)")
            else:
                breaks.append(f"{gone} missing: the files were removed, or are not given")
        if len(breaks) > SHOWN:
            breaks = [*breaks[:SHOWN], f"and {len(breaks) - SHOWN} more"]
        return Verdict(self._records, self._first, self._last, tuple(breaks), tuple(notes), frozenset(self._hashes))

    def _accept(self, found: Link, place: str) -> None:
        before, unread = self._last, self._unread
        self._unread = []
        cut = [f"{where}: the line is no record: a crash or a full disk has cut it off" for where in unread]
        if before is None:
            self._first = found
            if found.number == 1 and found.previous == BEGINNING:
                self._notes += cut  # nothing can have been before the first record of all
            else:
                self._breaks += [f"{where}: the line is not as it was written" for where in unread]
        elif found.number == before.number + 1 and found.previous == before.hash:
            self._notes += cut
        else:
            self._breaks.append(_break(before, found, place, unread))
        self._last = found
        self._records += 1
        self._hashes.add(found.hash)
        self._look_into(found, place)

    def _look_into(self, found: Link, place: str) -> None:
        after, lost = found.content.get("after"), found.content.get("lost")
        if found.content.get("action") == FILE and isinstance(after, dict):
            self._oldest_kept = max(self._oldest_kept, int(after.get("oldest", 1)))
        if lost:
            self._notes.append(f"{place}: {lost} records before it were lost: the file could not be written")


def _break(before: Link, found: Link, place: str, unread: list[str]) -> str:
    """Returns what is wrong between two records that do not follow each other."""
    if found.number > before.number + 1:
        gap = _records(before.number + 1, found.number - 1)
        if unread:
            return f"{unread[0]}: the line is not as it was written; {gap} unreadable"
        return f"{place}: {gap} missing before it"
    if found.number <= before.number:
        return f"{place}: record {found.number} stands after record {before.number}"
    return f"{place}: record {found.number} does not hold the hash of record {before.number}: one of them was replaced"


def _records(first: int, last: int) -> str:
    """Returns the subject and the verb of a sentence."""
    return f"record {first} is" if first == last else f"records {first} to {last} are"

"""A recorded file of explanations: of each job, why it had its place at the moments when somebody asked."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

from controller.cli.console.lines import Fields, read_lines

FIELDS: Fields = {"time": (int, float), "job": str, "explanation": dict}


class ExplanationsFile:
    """The lines of a file by their jobs. It stays open; in memory is where its lines are. Raises OSError.

    ``first_wrong`` is the number of the first line that is left out, and ``wrong`` how many there are.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first_wrong = self.wrong = 0
        self._file = path.open("rb")
        self._lines: dict[str, tuple[array[float], array[int]]] = {}
        """Of each job the times, and the starts and ends of its lines in turn."""
        for line in read_lines(self._file, FIELDS):
            if line.document is None:
                self.first_wrong = self.first_wrong or line.number
                self.wrong += 1
                continue
            times, places = self._lines.setdefault(line.document["job"], (array("d"), array("q")))
            times.append(line.document["time"])
            places.extend((line.start, line.end))

    def last(self, job: str, until: float) -> bytes:
        """Returns the last line of a job that is from no later than ``until``; ``null`` where there is none."""
        times, places = self._lines.get(job, ((), ()))
        for i in reversed(range(len(times))):
            if times[i] <= until:
                start, end = places[2 * i : 2 * i + 2]
                return os.pread(self._file.fileno(), end - start, start)
        return b"null\n"

    def close(self) -> None:
        """Close the file."""
        self._file.close()

"""A history that is written down as numbers in the first place, and shown as a job's progress at every look.

To make a tuple of all reports of all jobs anew for every plan, to compare it with the one before and to drop it again
takes longer than all else that is done with them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import isnan, nan
from typing import overload

from controller.curves.reports import Reports
from controller.model import Progress


class Record:
    """What a job has reported: ``reports`` are those kept, and after them one that stands in until the next, if any."""

    __slots__ = ("kept", "reports", "times", "version")

    def __init__(self) -> None:
        self.reports = Reports(array("d"), array("d"))
        self.times = array("d")
        self.kept = 0
        self.version = 0

    def go_on(
        self,
        iterations: Iterable[float],
        times: Iterable[float],
        metrics: Iterable[float],
        *,
        last: Progress,
        stands_in: bool,
    ) -> Recorded:
        """Keep these as well, and show all. ``last`` is the last of them; or it comes after them, and stands in."""
        reports, kept = self.reports, self.kept
        if len(self.times) > kept:
            del reports.iterations[kept:], self.times[kept:], reports.metrics[kept:]
        reports.iterations.extend(iterations)
        self.times.extend(times)
        reports.metrics.extend(metrics)
        self.kept = len(self.times)
        self.version += 1
        if stands_in:
            reports.iterations.append(last.iteration)
            self.times.append(last.time)
            reports.metrics.append(nan if last.metric is None else last.metric)
        return Recorded(self, last, stands_in=stands_in)

    def report(self, place: int) -> Progress:
        """One of those kept."""
        metric = self.reports.metrics[place]
        return Progress(self.reports.iterations[place], self.times[place], None if isnan(metric) else metric)


class Recorded(Sequence[Progress]):
    """A record's reports as they were when it was shown: no object a report, and as good as a tuple of them."""

    __slots__ = ("_kept", "_last", "_record", "_stands_in", "_version")

    def __init__(self, record: Record, last: Progress, *, stands_in: bool) -> None:
        self._record = record
        self._version = record.version
        self._kept = record.kept
        self._last = last
        self._stands_in = stands_in

    @property
    def reports(self) -> Reports:
        """All of them as numbers; they grow with the record."""
        return self._record.reports if self._record.version == self._version else Reports.of(self)

    def goes_on(self, before: Recorded) -> int:
        """How many of the first reports are the same as ``before``: 0 where that is not of the same record."""
        return min(self._kept, before._kept) if self._record is before._record else 0

    def __len__(self) -> int:
        return self._kept + self._stands_in

    def __iter__(self) -> Iterator[Progress]:
        yield from map(self._record.report, range(self._kept))
        if self._stands_in:
            yield self._last

    @overload
    def __getitem__(self, place: int) -> Progress: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Progress, ...]: ...
    def __getitem__(self, place: int | slice) -> Progress | tuple[Progress, ...]:
        if place == -1:
            return self._last
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

"""Adds up the marked bytes of jobs over address families, each of which has counters of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from host_reporter.marking.rules_text import Sent


class SentOverFamilies:
    """The sums, from one reading to the next. The counter of a job begins anew where all of its counters did."""

    def __init__(self) -> None:
        self._before: list[Mapping[str, Sent]] = []
        self._totals: dict[str, Sent] = {}
        self._counters = 0

    def add(self, readings: Sequence[Mapping[str, Sent]]) -> Mapping[str, Sent]:
        """Returns all bytes by job. ``readings`` are those of each family, always in the same order."""
        before = self._before or [{} for _ in readings]
        jobs = dict.fromkeys(job for reading in readings for job in reading)
        self._totals = {job: self._total(job, before, readings) for job in jobs}
        self._before = [dict(reading) for reading in readings]
        return dict(self._totals)

    def _total(self, job: str, before: Sequence[Mapping[str, Sent]], now: Sequence[Mapping[str, Sent]]) -> Sent:
        pairs = [(then.get(job), reading[job]) for then, reading in zip(before, now, strict=True) if job in reading]
        known = self._totals.get(job)
        if known is None or not any(then is not None and then.counter == sent.counter for then, sent in pairs):
            self._counters += 1
            return Sent(float(sum(sent.bytes for _, sent in pairs)), self._counters - 1)
        more = sum(
            max(sent.bytes - (then.bytes if then is not None and then.counter == sent.counter else 0), 0)
            for then, sent in pairs
        )
        return Sent(known.bytes + more, known.counter)

"""Bytes of an iteration, measured: what agents counted on a job's connections, over the iterations that it reported.

Counts and progress come from several hosts at their own moments. So the iterations at the moment of a count are read
between the points of progress, and a rate is taken over a window of the latest iterations: what a job sends once, at
its start, is no part of an iteration, and leaves with the window. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from controller.memo import Memo
from controller.model import Demand, Progress, server_of
from controller.pieces import Steps

WINDOW_ITERATIONS = 20.0
"""The latest so many, where counts are that close together."""

LEAST_ITERATIONS = 3.0
"""Fewer tell nothing: a count may fall anywhere in an iteration."""

LEAST_BYTES = 1024.0
"""Of an iteration between two hosts: less is the job's small talk."""

ANOTHER = 0.1
"""A measurement that differs from the one in use by less than this share of it changes nothing: it would be noise."""

DISAGREEMENT = 2.0
"""What a job declares and what is measured may differ by such a factor."""

DISAGREEMENT_BYTES = 65_536.0
"""And by so many bytes."""

MAX_SAMPLES = 64
_A_STEP = 4096
"""Pairs of hosts that are looked at before others of the controller's work may go on."""

MAX_STEP_BACK_SECONDS = 60.0
"""Of a host's clock; more is no late report."""

Counts = Mapping[tuple[str, str], tuple[float, float]]
"""By the host's own interface and the peer's: bytes sent to it, and received from it. The name of a host stands in the
place of its interface where it has one, or where nobody knows which."""
Rates = Mapping[tuple[str, str], float]
"""Bytes of an iteration by the host's own interface and the peer's."""


class Measurement(NamedTuple):
    """Bytes of one iteration, and over how many iterations they were measured. ``sources``: hosts that told.

    ``missed``: bytes of an iteration that these may have sent beside, on connections too short to be told apart; a host
    that is not in it does not know.
    """

    demand: tuple[Demand, ...]
    iterations: float
    sources: frozenset[str]
    missed: Mapping[str, float] = MappingProxyType({})


class _Sample(NamedTuple):
    time: float
    counts: Counts
    missed: float | None


@dataclass
class _Series:
    """One host's counts. ``name``: of the count; another one began at zero."""

    name: str
    samples: list[_Sample]


class Measured:
    """Of one job. ``value`` is the measurement in use; None: there is none yet."""

    def __init__(self, value: Measurement | None = None) -> None:
        self.value = value
        self._series: dict[str, _Series] = {}

    def note(self, host: str, name: str, time: float, counts: Counts, missed: float | None = None) -> None:
        """A host's counts at a moment by its clock. One from before the latest is late, and adds nothing.

        ``missed``: bytes that may be missing from them; None: not known how many.
        """
        series = self._series.get(host)
        if series is None or series.name != name:
            self._series[host] = _Series(name, [_Sample(time, counts, missed)])
            return
        if time <= series.samples[-1].time:
            if series.samples[-1].time - time > MAX_STEP_BACK_SECONDS:
                # The host's clock was set back: what was noted by the old one cannot be compared.
                series.samples = [_Sample(time, counts, missed)]
            return
        # They only grow; a peer that is not told of any more has sent what it has sent.
        series.samples.append(_Sample(time, {**series.samples[-1].counts, **counts}, missed))
        if len(series.samples) > MAX_SAMPLES:
            half = MAX_SAMPLES // 2
            series.samples = series.samples[:half:2] + series.samples[half:]

    def drop(self, hosts: Iterable[str]) -> None:
        """What these hosts counted is of another time."""
        for host in hosts:
            self._series.pop(host, None)

    def measure_in_steps(self, progress: Sequence[Progress]) -> Steps[bool]:
        """Measure anew. Yields where others may go on, a host at a time; returns whether ``value`` is another one."""
        if not self._series or not progress:
            return False
        # Points before the first sample tell nothing of what comes after.
        first = min(series.samples[0].time for series in self._series.values())
        clock = _Clock(progress[max(bisect_right(progress, first, key=lambda point: point.time) - 1, 0) :])
        rates: dict[str, tuple[Rates, Rates]] = {}
        spans: list[float] = []
        missed: dict[str, float] = {}
        for host, series in list(self._series.items()):
            window = _window(series.samples, clock)
            if window is not None:
                then, now, iterations = window
                spans.append(iterations)
                rates[host] = _rates(then.counts, now.counts, iterations)
                if then.missed is not None and now.missed is not None:
                    missed[host] = max(now.missed - then.missed, 0.0) / iterations
            yield
        if not rates:
            return False
        demand = yield from _demand(rates)
        new = Measurement(demand, min(spans), frozenset(rates), missed)
        if self.value is not None and not (yield from _differ(self.value.demand, demand)):
            # The demand in use stays; how sure it is does not.
            if missed != self.value.missed:
                self.value = self.value._replace(missed=missed)
            return False
        self.value = new
        return True


def _demand(rates: Mapping[str, tuple[Rates, Rates]]) -> Steps[tuple[Demand, ...]]:
    """What each interface sends to each other, as those hosts say that counted."""
    found: dict[str, dict[str, float]] = {}
    for sent, received in rates.values():
        for (own, peer), amount in sent.items():
            found.setdefault(own, {})[peer] = amount
        # Who receives counts only for a sender that does not count itself.
        for (own, peer), amount in received.items():
            if server_of(peer) not in rates:
                found.setdefault(peer, {})[own] = amount
        yield
    demand: list[Demand] = []
    for src in sorted(found):
        demand += [Demand(src, dst, amount) for dst, amount in sorted(found[src].items()) if amount >= LEAST_BYTES]
        yield
    return tuple(demand)


def disagreements(declared: Sequence[Demand], measured: Measurement) -> tuple[str, ...]:
    """What a job declares to send from each host, where it is measured otherwise by more than DISAGREEMENT.

    That it declares too much is said only where nothing that would explain it can be missing.
    """
    said, seen = sent_by_host(declared), sent_by_host(measured.demand)
    found = []
    for host in sorted(measured.sources):
        told, least = said.get(host, 0.0), seen.get(host, 0.0)
        most = least + measured.missed.get(host, float("inf"))
        too_little = told < least / DISAGREEMENT and least - told > DISAGREEMENT_BYTES
        too_much = told > most * DISAGREEMENT and told - most > DISAGREEMENT_BYTES
        if too_little or too_much:
            found.append(
                f"it declares {told:.4g} bytes an iteration from {host}; {least:.4g} were measured over "
                f"{measured.iterations:.3g} iterations"
            )
    return tuple(found)


_sums: Memo[Sequence[Demand], Mapping[str, float]] = Memo(4096)


def sent_by_host(demand: Sequence[Demand]) -> Mapping[str, float]:
    """Returns the bytes that each host sends. It is remembered."""
    return _sums.get(demand, lambda: _sum_by_host(demand))


def _sum_by_host(demand: Sequence[Demand]) -> dict[str, float]:
    total: dict[str, float] = {}
    for src, _, amount in demand:
        server = server_of(src)
        total[server] = total.get(server, 0.0) + amount
    return total


class _Clock:
    """Iterations done at a moment, read between points of progress."""

    def __init__(self, progress: Sequence[Progress]) -> None:
        self._times: list[float] = []
        self._iterations: list[float] = []
        for point in progress:
            # A point that is told with an earlier time than one before it is not believed here.
            if not self._times or point.time > self._times[-1]:
                self._times.append(point.time)
                self._iterations.append(point.iteration)

    def at(self, time: float) -> float | None:
        """None: before the first point, or after the last."""
        after = bisect_right(self._times, time)
        if after == 0:
            return None
        before = after - 1
        if after == len(self._times):
            return self._iterations[before] if time == self._times[before] else None
        share = (time - self._times[before]) / (self._times[after] - self._times[before])
        return self._iterations[before] + share * (self._iterations[after] - self._iterations[before])


def _window(samples: Sequence[_Sample], clock: _Clock) -> tuple[_Sample, _Sample, float] | None:
    """The samples between which to measure, and the iterations between them."""
    placed = [(sample, iteration) for sample in samples if (iteration := clock.at(sample.time)) is not None]
    if not placed:
        return None
    last, end = placed[-1]
    chosen: tuple[_Sample, float] | None = None
    for sample, iteration in placed:
        if end - iteration < LEAST_ITERATIONS:
            break
        # The latest that is a whole window away, else the earliest.
        if chosen is None or end - iteration >= WINDOW_ITERATIONS:
            chosen = (sample, iteration)
    return None if chosen is None else (chosen[0], last, end - chosen[1])


def _rates(first: Counts, last: Counts, iterations: float) -> tuple[Rates, Rates]:
    sent, received = {}, {}
    for ends, (now_sent, now_received) in last.items():
        then_sent, then_received = first.get(ends, (0.0, 0.0))
        sent[ends] = max(now_sent - then_sent, 0.0) / iterations
        received[ends] = max(now_received - then_received, 0.0) / iterations
    return sent, received


def _differ(old: Sequence[Demand], new: Sequence[Demand]) -> Steps[bool]:
    before: dict[tuple[str, str], float] = {}
    moved = total = 0.0
    for number, (src, dst, amount) in enumerate(old):
        before[src, dst] = amount
        total += amount
        if number % _A_STEP == _A_STEP - 1:
            yield
    for number, (src, dst, amount) in enumerate(new):
        moved += abs(amount - before.pop((src, dst), 0.0))
        if number % _A_STEP == _A_STEP - 1:
            yield
    return moved + sum(before.values()) > ANOTHER * total

"""What a job waits for: at each of its ports, the jobs that are served before it, and for how long. Pure.

A port serves the classes in their order. So a job waits there for what the jobs of smaller class numbers still have to
send or receive. It shares the port with the jobs of its own class, so it also waits for what these have left, at most.
The seconds are those of an otherwise idle port. Together with the job's own they are V of ``bssi.completion_times``,
where jobs of different bands that meet at a port have different classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from controller.model import Port, Snapshot
from controller.ordering.loads import Floats, Ints, LoadMatrix, load_matrix, port_numbers
from controller.pieces import Steps

_DIGITS = 9
"""Round differences of seconds to nanoseconds, so that two ports with the same jobs have the very same seconds."""
MOST_PORTS = 16
"""Tell of at most this many ports of a job."""
MOST_OTHERS = 16
"""Name at most this many other jobs at a port."""

PIECE = 512
"""Let others go on after the waits of so many jobs."""


class OtherJob(NamedTuple):
    """Another job at a port. ``seconds_left``: what the port needs for all iterations that the job has left."""

    job: str
    service_class: int
    seconds_left: float


class PortWait(NamedTuple):
    """What a job waits for at one of its ports.

    ``own_seconds`` is what the port needs for one iteration of the job, and ``own_seconds_left`` for all that are left.
    ``seconds_before`` adds up all jobs with smaller class numbers, and ``seconds_beside`` the others of the job's own
    class. ``before`` and ``alike`` name some of them, most seconds first. The counts are those of all jobs with load at
    the port.
    """

    port: Port
    own_seconds: float
    own_seconds_left: float
    seconds_before: float
    seconds_beside: float
    before: tuple[OtherJob, ...]
    before_count: int
    alike: tuple[OtherJob, ...]
    alike_count: int
    after_count: int


class JobWaits(NamedTuple):
    """What a job waits for at its ports.

    ``before_count`` counts the jobs that are served before it at one of its ports or more, and ``alike_count`` those of
    its class that share one or more with it.
    """

    ports: tuple[PortWait, ...]
    before_count: int
    alike_count: int


class LongestWait(NamedTuple):
    """The port at which a job waits for longest, and for whom: the first of ``PortWait``, for each job of a plan.

    ``first`` is served first of the jobs before it there; None: nobody is before it. ``seconds_until_served`` is the
    longest time of all its ports until one has served all that is left of the jobs before it, of those beside it, and
    of itself; 0: nothing is left of it.
    """

    port: Port
    seconds_before: float
    seconds_beside: float
    before_count: int
    first: str | None
    alike_count: int
    seconds_until_served: float

    @property
    def seconds(self) -> float:
        """Returns how long the job waits at most."""
        return self.seconds_before + self.seconds_beside


class _Served(NamedTuple):
    """What is served before each entry of a load matrix, at the entry's port.

    ``seconds`` and ``jobs`` are of the jobs with smaller class numbers, ``beside`` and ``alike`` of the others of its
    class. ``own`` is what the job itself has left, and ``first`` is the row of the job that is served first there. All
    have one number for each entry.
    """

    seconds: Floats
    beside: Floats
    own: Floats
    jobs: Ints
    alike: Ints
    first: Ints

    def longest(self) -> Floats:
        """Returns how long the job of each entry waits there at most."""
        return self.seconds + self.beside


class _Others(NamedTuple):
    """The loads of other jobs at a job's ports. ``slot`` is the position of the port among them. All have one shape."""

    slot: Ints
    job: Ints
    service_class: Ints
    seconds: Floats


def waits(snapshot: Snapshot, classes: Mapping[str, int], job_id: str) -> JobWaits:
    """Returns what a job waits for at the ports that its demand loads: the ports with the longest wait first.

    ``classes`` has every job of the snapshot. Raises KeyError for a job or a host that is not there.
    """
    names = [job.id for job in snapshot.jobs]
    try:
        own = names.index(job_id)
    except ValueError:
        raise KeyError(job_id) from None
    loads = load_matrix(snapshot)
    row = slice(loads.start[own], loads.start[own + 1])
    ports, seconds = loads.port[row], loads.seconds[row]
    class_of_row = np.array([classes[name] for name in names], dtype=np.int64)
    others = _others(snapshot, loads, class_of_row, own)
    own_class = classes[job_id]
    served = _served(snapshot, loads, class_of_row)
    before, beside = served.seconds[row], served.beside[row]
    numbers = port_numbers(snapshot.hosts, snapshot.routes)

    def wait(slot: int) -> PortWait:
        here = _Others(*(array[others.slot == slot] for array in others))
        smaller, equal = here.service_class < own_class, here.service_class == own_class
        return PortWait(
            port=numbers.port(int(ports[slot])),
            own_seconds=float(seconds[slot]),
            own_seconds_left=float(seconds[slot]) * snapshot.jobs[own].iterations_left,
            seconds_before=float(before[slot]),
            seconds_beside=float(beside[slot]),
            before=_most(here, smaller, names),
            before_count=int(smaller.sum()),
            alike=_most(here, equal, names),
            alike_count=int(equal.sum()),
            after_count=int((here.service_class > own_class).sum()),
        )

    first = np.lexsort((ports, -seconds, -(before + beside)))[:MOST_PORTS]
    return JobWaits(
        ports=tuple(map(wait, first.tolist())),
        before_count=len(np.unique(others.job[others.service_class < own_class])),
        alike_count=len(np.unique(others.job[others.service_class == own_class])),
    )


def longest_waits(snapshot: Snapshot, classes: Mapping[str, int]) -> Steps[dict[str, LongestWait]]:
    """Returns the first port of ``waits`` for each job that has demand. ``classes`` has every job of the snapshot.

    Yields where others may go on.
    """
    names = [job.id for job in snapshot.jobs]
    loads = load_matrix(snapshot)
    served = _served(snapshot, loads, np.array([classes[name] for name in names], dtype=np.int64))
    row = loads.row_of_entry()
    order = np.lexsort((loads.port, -loads.seconds, -served.longest(), row))
    rows, at = np.unique(row[order], return_index=True)
    entry = order[at]
    yield
    until = _until_served(served, row, loads.jobs)
    columns = (loads.port, served.seconds, served.beside, served.jobs, served.first, served.alike, until[row])
    numbers = port_numbers(snapshot.hosts, snapshot.routes)
    found: dict[str, LongestWait] = {}
    for job, port, seconds, beside, jobs, first, alike, served_after in zip(
        rows.tolist(), *(column[entry].tolist() for column in columns), strict=True
    ):
        leader = names[first] if jobs else None
        found[names[job]] = LongestWait(numbers.port(port), seconds, beside, jobs, leader, alike, served_after)
        if len(found) % PIECE == 0:
            yield
    return found


def _served(snapshot: Snapshot, loads: LoadMatrix, classes: Ints) -> _Served:
    """Returns what is served before each entry of ``loads``. ``classes``: by row."""
    row, port = loads.row_of_entry(), loads.port
    service = classes[row]
    left = loads.seconds * np.array([job.iterations_left for job in snapshot.jobs], dtype=float)[row]
    shape = (loads.ports, int(service.max(initial=0)) + 1)
    at = port * shape[1] + service
    # Added up port by port, so that two ports with the same jobs have the very same seconds.
    seconds = np.bincount(at, weights=left, minlength=shape[0] * shape[1]).reshape(shape)
    count = np.bincount(at[left > 0], minlength=shape[0] * shape[1]).reshape(shape)
    alike = count[port, service] - (left > 0)
    first = np.zeros(loads.ports, dtype=np.int64)
    waiting = np.flatnonzero(left > 0)
    last_to_first = waiting[np.lexsort((row[waiting], service[waiting]))[::-1]]
    first[port[last_to_first]] = row[last_to_first]
    return _Served(
        seconds=_before(seconds)[port, service],
        beside=np.where(alike > 0, np.round(seconds[port, service] - left, _DIGITS), 0.0).clip(0.0),
        own=left,
        jobs=_before(count)[port, service],
        alike=alike,
        first=first[port],
    )


def _until_served(served: _Served, row: Ints, jobs: int) -> Floats:
    """Returns when the last port of each job has served it and all before and beside it. Shape (jobs,)."""
    until = np.zeros(jobs)
    np.maximum.at(until, row, np.where(served.own > 0, served.longest() + served.own, 0.0))
    return until


def _before(values: np.ndarray[tuple[int, int], np.dtype[Any]]) -> np.ndarray[tuple[int, int], np.dtype[Any]]:
    """Returns for each port and class the sum over the smaller classes. Shape (ports, classes)."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def _others(snapshot: Snapshot, loads: LoadMatrix, classes: Ints, own: int) -> _Others:
    """Returns what other jobs still load at the ports of the job in row ``own``. ``classes``: by row."""
    ports = loads.port[loads.start[own] : loads.start[own + 1]]
    slot_of_port = np.full(loads.ports, -1, dtype=np.int64)
    slot_of_port[ports] = np.arange(len(ports))
    slot, job = slot_of_port[loads.port], loads.row_of_entry()
    left = np.array([each.iterations_left for each in snapshot.jobs], dtype=float)
    seconds = loads.seconds * left[job]
    here = (slot >= 0) & (job != own) & (seconds > 0)
    return _Others(slot[here], job[here], classes[job[here]], seconds[here])


def _most(here: _Others, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]], names: list[str]) -> tuple[OtherJob, ...]:
    """Returns the chosen jobs at one port, most seconds first; of equal ones the first in the snapshot."""
    job, service_class, seconds = here.job[chosen], here.service_class[chosen], here.seconds[chosen]
    order = np.argsort(-seconds, kind="stable")[:MOST_OTHERS]
    return tuple(
        OtherJob(names[j], k, left)
        for j, k, left in zip(job[order].tolist(), service_class[order].tolist(), seconds[order].tolist(), strict=True)
    )

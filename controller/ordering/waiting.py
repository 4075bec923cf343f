"""What a job waits for: at each of its ports, the jobs that are served before it, and for how long. Pure.

A port serves the classes in their order. So a job waits there for what the jobs of smaller class numbers still have to
send or receive, and shares the port with the jobs of its own class. The seconds are those of an otherwise idle port.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from controller.model import Port, Snapshot
from controller.ordering.loads import Floats, Ints, LoadMatrix, load_matrix, port_numbers, summed

MOST_PORTS = 16
"""Tell of at most this many ports of a job."""
MOST_OTHERS = 16
"""Name at most this many other jobs at a port."""


class OtherJob(NamedTuple):
    """Another job at a port. ``seconds_left``: what the port needs for all iterations that the job has left."""

    job: str
    service_class: int
    seconds_left: float


class PortWait(NamedTuple):
    """What a job waits for at one of its ports.

    ``own_seconds`` is what the port needs for one iteration of the job, and ``own_seconds_left`` for all that are left.
    ``seconds_before`` adds up all jobs with smaller class numbers; ``before`` names some of them, most seconds first,
    and ``alike`` some of the job's own class. The counts are those of all jobs with load at the port.
    """

    port: Port
    own_seconds: float
    own_seconds_left: float
    seconds_before: float
    before: tuple[OtherJob, ...]
    before_count: int
    alike: tuple[OtherJob, ...]
    alike_count: int
    after_count: int


class _Others(NamedTuple):
    """The loads of other jobs at a job's ports. ``slot`` is the position of the port among them. All have one shape."""

    slot: Ints
    job: Ints
    service_class: Ints
    seconds: Floats


def waits(snapshot: Snapshot, classes: Mapping[str, int], job_id: str) -> tuple[PortWait, ...]:
    """Returns what a job waits for at the ports that its demand loads: the ports with most seconds before it first.

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
    others = _others(snapshot, loads, np.array([classes[name] for name in names], dtype=np.int64), own)
    own_class = classes[job_id]
    is_before = others.service_class < own_class
    before = summed(others.slot[is_before], others.seconds[is_before], len(ports))
    numbers = port_numbers(snapshot.hosts, snapshot.routes)

    def wait(slot: int) -> PortWait:
        here = _Others(*(array[others.slot == slot] for array in others))
        smaller, equal = here.service_class < own_class, here.service_class == own_class
        return PortWait(
            port=numbers.port(int(ports[slot])),
            own_seconds=float(seconds[slot]),
            own_seconds_left=float(seconds[slot]) * snapshot.jobs[own].iterations_left,
            seconds_before=float(before[slot]),
            before=_most(here, smaller, names),
            before_count=int(smaller.sum()),
            alike=_most(here, equal, names),
            alike_count=int(equal.sum()),
            after_count=int((here.service_class > own_class).sum()),
        )

    first = np.lexsort((ports, -seconds, -before))[:MOST_PORTS]
    return tuple(map(wait, first.tolist()))


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

"""TensorLights at one host: which job's parameter server gets which band of the NIC. Pure.

X. S. Huang, A. Chen, T. S. E. Ng: Green, Yellow, Yield: End-Host Traffic Scheduling for Distributed Deep Learning with
TensorLights, HPBDC 2019. Parameter servers that share a host fight for its NIC when they fan out updates, and the slow
ones make stragglers, so each gets a band of its own there.

[known, from the released code] There are seven bands for jobs, and the last band is for all else. Of n jobs the one of
rank r is in band r // ceil(n / 7). TLs-One ranks jobs by their launch. TLs-RR rotates the ranks every 20 s. Where
models differ, smaller ones go first, and only jobs with models of equal size rotate. Nothing is done where only one job
has a server on the host. [ours] A model's size is what the server sends a worker in an iteration, as the job declares
it. Jobs of one band share it, each with a queue of its own. If each job is to have a band, the jobs of one band have
places in it (``places``), which are served in strict order.
``controller.policies.parts.tensorlights`` ranks and rotates in the same way, for all hosts at once.

Cost O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from controller.model import Role
from controller.wire import JobSpec
from controller.wire.parts import PartSpec

Sharing = Literal["shared", "each"]
"""Whether jobs share the bands, as published, or each has a band of its own."""

BANDS = 7
PLACES = 8
"""A band has so many places, because HTB has so many priorities: 56 jobs of a host have one each."""

ROTATE_SECONDS = 20.0

LEAST_RATE_BPS = 1e5
"""Refuse a link with a lower rate. There the smallest shares (ARP's is 1 %) are so few bytes a second that the kernel's
interface has no number for the time of a packet."""

MAX_PORTS = 4000
"""Distinguish at most this many ports of all jobs together. The kernel numbers the filters of one preference with 12
bits. A filter beyond that gets the last number again, so its target could not be changed later."""


class Server(NamedTuple):
    """A job's parameter servers on this host: their TCP ports, and the two values that rank the job.

    ``launched`` is in seconds since the epoch.
    """

    job: str
    ports: tuple[int, ...]
    model_bytes: float
    launched: float


class BandQueue(NamedTuple):
    """A queue of the NIC: its band (band 0 is served first), and its number in that band."""

    band: int
    number: int


class Place(NamedTuple):
    """A job's place in its band (place 0 is served first), and its number in that place."""

    place: int
    number: int


def server_of(job: str, spec: JobSpec | PartSpec | None, host: str, seen: float) -> Server | None:
    """Returns the job's servers on ``host``; None where it has none there, or none with a known port.

    ``seen`` is when the agent first knew of the job. It is used where the spec gives no arrival.
    """
    if not isinstance(spec, JobSpec):
        return None
    ports = {task.port for task in spec.tasks if task.role is Role.PS and task.host == host}
    known = tuple(sorted(port for port in ports if port is not None))
    if not known:
        return None
    size = max((demand.bytes for demand in spec.demand if demand.src == host), default=0.0)
    return Server(job, known, size, seen if spec.arrival is None else spec.arrival)


def band_queues(servers: Collection[Server], turn: int | None) -> dict[str, BandQueue]:
    """Returns the queue of each job, if there are two jobs or more.

    ``turn`` is the number of rotations so far; None means that jobs never rotate.
    """
    if len(servers) < 2:
        return {}
    width = math.ceil(len(servers) / BANDS)
    ranked = sorted(servers, key=lambda server: (server.model_bytes, server.launched, server.job))
    if turn is not None:
        ranked = [
            server
            for _, equals in groupby(ranked, key=lambda server: server.model_bytes)
            for server in _rotated(list(equals), turn, width)
        ]
    return {server.job: BandQueue(*divmod(rank, width)) for rank, server in enumerate(ranked)}


def places(queues: Mapping[str, BandQueue]) -> dict[str, Place]:
    """Returns the place of each job in its band: one each, where no band has more than PLACES jobs.

    Else a place has as few jobs as possible, which share it. Jobs keep the order of their numbers.
    """
    width = max((queue.number for queue in queues.values()), default=0) + 1
    share = math.ceil(width / PLACES)
    return {job: Place(*divmod(queue.number, share)) for job, queue in queues.items()}


def fitting(servers: Collection[Server]) -> tuple[Server, ...]:
    """Returns the servers that were launched first and have at most MAX_PORTS ports together."""
    taken: list[Server] = []
    ports = 0
    for server in sorted(servers, key=lambda server: (server.launched, server.job)):
        ports += len(server.ports)
        if ports > MAX_PORTS:
            break
        taken.append(server)
    return tuple(taken)


def turn_at(seconds: float, rotate_seconds: float) -> int:
    """Returns the turn at a moment of a monotonic clock."""
    return int(seconds // rotate_seconds)


def _rotated(equals: Sequence[Server], turn: int, width: int) -> Iterable[Server]:
    """Returns the jobs after ``turn`` rotations by one band of ``width`` jobs; the last jobs come first.

    After each full round the order moves by one more job, so that each job gets each rank. Without that, two jobs in
    bands of two would never change places.
    """
    count = len(equals)
    steps = math.gcd(width, count)
    rounds = turn // (count // steps)
    shift = (turn * width + rounds % steps) % count
    return (*equals[count - shift :], *equals[: count - shift])

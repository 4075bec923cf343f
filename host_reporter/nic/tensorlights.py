"""TensorLights at one host: which job's parameter server gets which band of the NIC. Pure.

X. S. Huang, A. Chen, T. S. E. Ng: Green, Yellow, Yield: End-Host Traffic Scheduling for Distributed Deep Learning with
TensorLights, HPBDC 2019. Parameter servers that share a host fight for its NIC when they fan out updates, and the slow
ones make stragglers; so each gets a band of its own there.

[known, from the released code] Seven bands for jobs, the last for all else: of n jobs the one of rank r is in band
r // ceil(n / 7). TLs-One ranks by launch; TLs-RR moves the jobs on every 20 s. Where models differ the smaller go
first, and jobs move on among equals only. Nothing is done where server job alone has a server. [ours] A model's size is
what the server sends a worker in an iteration, as the job declares it; jobs of one band share, each from a queue of its
own.
``controller.policies.parts.tensorlights`` ranks and rotates in the same way, for all hosts at once.

Cost O(n log n).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from controller.model import Role
from controller.wire import JobSpec

BANDS = 7
ROTATE_SECONDS = 20.0

LEAST_RATE_BPS = 1e5
"""Of a link whose NIC is ordered: on a slower one the shares that must not starve (ARP's is 1 %) are so few bytes a
second that the kernel's interface has no number for the time of a packet."""

MAX_PORTS = 4000
"""Of all jobs together that are told apart: the kernel numbers the filters of one place with 12 bits, and what is more
gets the last number again, so that it could not be led elsewhere later."""


class Server(NamedTuple):
    """What a job's parameter servers on this host are here: their TCP ports, and what ranks the job.

    ``launched`` in seconds since the epoch.
    """

    job: str
    ports: tuple[int, ...]
    model_bytes: float
    launched: float


class BandQueue(NamedTuple):
    """A queue of the NIC: its band, served first where it is 0, and its number among those of the band."""

    band: int
    number: int


def server_of(job: str, spec: JobSpec | None, host: str, seen: float) -> Server | None:
    """The job's servers on ``host``; None: it has none there, or none whose port is told.

    ``seen``: when the agent first knew of the job, which counts where the spec does not say when it arrived.
    """
    if spec is None:
        return None
    ports = {task.port for task in spec.tasks if task.role is Role.PS and task.host == host}
    known = tuple(sorted(port for port in ports if port is not None))
    if not known:
        return None
    size = max((demand.bytes for demand in spec.demand if demand.src == host), default=0.0)
    return Server(job, known, size, seen if spec.arrival is None else spec.arrival)


def band_queues(servers: Collection[Server], turn: int | None) -> dict[str, BandQueue]:
    """Returns the queue of each job, if there are two jobs or more.

    ``turn`` is how often jobs have moved on; None: they never do.
    """
    if len(servers) < 2:
        return {}
    width = math.ceil(len(servers) / BANDS)
    ranked = sorted(servers, key=lambda server: (server.model_bytes, server.launched, server.job))
    if turn is not None:
        ranked = [
            server
            for _, equals in groupby(ranked, key=lambda server: server.model_bytes)
            for server in _moved_on(list(equals), turn, width)
        ]
    return {server.job: BandQueue(*divmod(rank, width)) for rank, server in enumerate(ranked)}


def fitting(servers: Collection[Server]) -> tuple[Server, ...]:
    """Those that were launched first, as far as MAX_PORTS reach."""
    taken: list[Server] = []
    ports = 0
    for server in sorted(servers, key=lambda server: (server.launched, server.job)):
        ports += len(server.ports)
        if ports > MAX_PORTS:
            break
        taken.append(server)
    return tuple(taken)


def turn_at(seconds: float, rotate_seconds: float) -> int:
    """The turn at a moment, of a clock that only goes forward."""
    return int(seconds // rotate_seconds)


def _moved_on(equals: Sequence[Server], turn: int, width: int) -> Iterable[Server]:
    """Moved on by ``turn`` bands of ``width`` jobs: who was last comes first.

    Once that has come back to where it began it goes on one job further, until each has had each place: two jobs in
    bands of two would never change.
    """
    count = len(equals)
    steps = math.gcd(width, count)
    rounds = turn // (count // steps)
    shift = (turn * width + rounds % steps) % count
    return (*equals[count - shift :], *equals[: count - shift])

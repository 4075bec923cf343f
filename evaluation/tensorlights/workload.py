"""The jobs of the claim ``tensorlights``: equal ones, whose parameter servers stand together or apart, as published.

[known, from the authors' released code] 21 hosts; 21 jobs of one parameter server and 20 workers each, a worker on
every other host, in an order that is shuffled by job; eight placements of the servers, whose jobs are launched one
after the other within about two seconds; ResNet-32 (0.46 million parameters) on images of CIFAR-10, four a worker, on
processors; links of 10 Gbit/s. Workers ask for the model when all have pushed.

[ours] Links of 5 Mbit/s, a two-thousandth of theirs, and a model of 12.5 KB, so that one processor can emulate the
hosts. What all jobs fan out in an iteration fills one link for 8.8 s, and computing takes as long. Theirs is 0.6 s on
their link, beside 0.4 to 1.1 s of computing: 0.41 GFLOP an image, 80 images on a host, six cores at 5 to 15 GFLOP/s.
That is our estimate, because their code does not say it. Computing is a sleep here, whose length is fixed. In the
variant with ``processors`` workers slow each other, as theirs do. Bands rotate every 20 s as theirs do, which is one
iteration or two here, and about 15 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from controller.model import BITS_PER_BYTE
from simulator.network import PAYLOAD_SHARE
from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.workload import FIRST_PORT

HOSTS = 21
WORKERS = HOSTS - 1
JOBS = 21
LINK_BPS = 5e6
MODEL_BYTES = 12_500
COMPUTE_PER_ROUND = 1.0
ROUND_SECONDS = JOBS * WORKERS * MODEL_BYTES * BITS_PER_BYTE / (LINK_BPS * PAYLOAD_SHARE)
"""What all jobs fan out in an iteration fills the link of one host for so many seconds."""

COMPUTE_SECONDS = round(COMPUTE_PER_ROUND * ROUND_SECONDS, 1)
ITERATIONS = 10
LAUNCH_SECONDS = 2.0
LIMIT_SECONDS = 600.0
PERIOD_SECONDS = 5.0
"""Agents report seldom, because no arm's order depends on progress, and emulated hosts share one processor."""

SEGMENTS = 2
"""A packet has so many full frames: a model is then five packets, of which TCP keeps two in the NIC's queue at a time.
(This is its limit for small queues.) So the connections of a fan-out share the link in small pieces.
"""

SEGMENTS_OF_A_MODEL = 9
"""A model is one packet where packets may have so many frames."""

NIC_QUEUE_BYTES = 16 * 2**20
"""Deep enough for what all jobs fan out at once: fair sharing must lose no packet there that TensorLights would not."""

PORT_PACKETS = 4096
"""A queue of a switch's port holds what all workers push at once, with packets of ``SEGMENTS`` frames.

A push has nine frames here, where the authors' have 1,300 [known]. TCP sends all nine at once, so it cannot slow down
where a queue is full. With queues of a few hundred KB nearly every push waited for a timeout in a first look.
"""

RTO_MIN_SECONDS = ROUND_SECONDS
"""TCP sends nothing again while a packet may still wait in a queue, which all pushes together fill for so long.

Linux's least timeout of 0.2 s is a third of the authors' round, and a 44th of one here: what only waits would be sent
again.
"""

Placement = tuple[int, ...]
"""The number of servers on each host that has any."""

PLACEMENTS: tuple[Placement, ...] = (
    (21,),
    (5, 16),
    (10, 11),
    (7,) * 3,
    (5, 5, 5, 6),
    (4, 4, 4, 4, 5),
    (3,) * 7,
    (1,) * 21,
)
"""The authors' placements [known]: from all servers on one host to one a host."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What is not as in the claim, for the sake of an explanation. ``name`` is empty for the claim itself.

    ``shares``: so many jobs are one, with as many times the bytes. ``processors``: so many workers of a host compute at
    full speed at once; where those of all ``JOBS`` compute, they take as long as in the claim. ``batch``: a worker
    computes for as many times as long, as with a batch of another size. ``port_packets``: a queue of a switch's port
    holds so many; None: a few hundred KB, as in a commodity switch. ``rto_min_seconds``: TCP's least timeout; None:
    that of Linux.
    """

    name: str = ""
    pulls: Literal["sent", "asked"] = "asked"
    segments: int = SEGMENTS
    shares: int = 1
    processors: int | None = None
    batch: float = 1.0
    port_packets: int | None = PORT_PACKETS
    rto_min_seconds: float | None = RTO_MIN_SECONDS

    @property
    def compute_seconds(self) -> float:
        """The seconds that a worker computes in an iteration where no other does."""
        seconds = COMPUTE_SECONDS * self.batch
        return seconds if self.processors is None else seconds * self.processors / JOBS


def experiment(placement: Placement, seed: int, iterations: int, variant: Variant) -> Experiment:
    """Returns the jobs, with their servers as ``placement`` says.

    From the seed come the servers' hosts, the order in which each job has its workers, and when jobs are launched.
    """
    random = Random(f"trainyard tensorlights {placement} {seed}")  # noqa: S311 - to be repeated
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    hosts = random.sample(names, len(placement))
    servers = [host for host, count in zip(hosts, placement, strict=True) for _ in range(count)]
    arrivals = sorted(random.uniform(0.0, LAUNCH_SECONDS) for _ in servers)
    curve = next(curve.name for curve in curves.index() if curve.use == "claim" and curve.iterations >= iterations)
    jobs = []
    for number, (server, arrival) in enumerate(zip(servers, arrivals, strict=True)):
        workers = [name for name in names if name != server]
        random.shuffle(workers)
        jobs.append(
            JobPlan(
                id=f"job{number + 1:02d}",
                arrival=round(arrival, 3),
                architecture="ps",
                hosts=(server, *workers),
                port=FIRST_PORT + number,
                model="equal",
                model_bytes=MODEL_BYTES * variant.shares,
                compute_seconds=variant.compute_seconds,
                iterations=iterations,
                curve=curve,
                pulls=variant.pulls,
            )
        )
    return Experiment(
        name=f"servers-{placement_key(placement)}-{seed}",
        seed=seed,
        hosts=HOSTS,
        link_bps=LINK_BPS,
        jobs=tuple(jobs),
        limit_seconds=LIMIT_SECONDS,
        period_seconds=PERIOD_SECONDS,
        barriers=True,
        nic_queue_bytes=NIC_QUEUE_BYTES,
        segments=variant.segments,
        processors=variant.processors,
        port_packets=variant.port_packets,
        rto_min_seconds=variant.rto_min_seconds,
    )


def placement_key(placement: Placement) -> str:
    """Returns a placement in a folder's name: 21, 5-16, 7x3."""
    if len(placement) > 1 and len(set(placement)) == 1:
        return f"{placement[0]}x{len(placement)}"
    return "-".join(map(str, placement))


def placement_name(placement: Placement) -> str:
    """Returns a placement in words."""
    return f"{sum(placement)} parameter servers on {hosts_name(placement)}"


def hosts_name(placement: Placement) -> str:
    """Returns the hosts of a placement in words: 2 hosts, 5 + 16."""
    hosts = len(placement)
    if hosts == 1:
        return "one host"
    if set(placement) == {1}:
        return f"{hosts} hosts, one each"
    each = f"{placement[0]} each" if len(set(placement)) == 1 else " + ".join(map(str, placement))
    return f"{hosts} hosts, {each}"

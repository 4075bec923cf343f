"""How the streams that leave a host share its link: in one queue, in hashed queues, or in TensorLights' bands. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

from host_reporter.nic.tensorlights.bands import ROTATE_SECONDS, Server, band_queues, turn_at


class Stream(NamedTuple):
    """The connection of a job's server to one worker. Both are numbers: jobs by launch, workers by rank."""

    job: int
    worker: int


Shares = Mapping[Stream, float]
"""The share of the link that each stream has. A stream without an entry has none."""


class Load(NamedTuple):
    """What wants to leave a host: at least one stream, who came first before others.

    ``living`` are the jobs that have not ended, by launch.
    """

    streams: Collection[Stream]
    living: Sequence[int]
    now: float


class Order(ABC):
    """Divides a link among streams. The shares change by themselves every ``rotate_seconds``; None: never."""

    rotate_seconds: float | None = None

    @abstractmethod
    def shares(self, load: Load) -> Shares:
        """Returns the shares of at least one stream."""


class OneQueue(Order):
    """All streams share alike, as in one queue that each of them fills as fast as it empties."""

    def shares(self, load: Load) -> Shares:
        """Returns an equal share for each stream."""
        return dict.fromkeys(load.streams, 1.0 / len(load.streams))


class FirstCome(Order):
    """Each model leaves as a whole, in the order in which servers sent them, as in one queue that holds them all."""

    def shares(self, load: Load) -> Shares:
        """Returns the whole link for the first stream."""
        return {next(iter(load.streams)): 1.0}


class HashedQueues(Order):
    """Queues share alike, and so do the streams of a queue. Each stream has one queue for life, by chance.

    Linux's default on a network interface with several hardware queues is such a set of queues (mq). A stream in a full
    queue is slower than others.
    """

    def __init__(self, queues: int, seed: int) -> None:
        self._queues = queues
        self._random = Random(f"trainyard hashed queues {seed}")  # noqa: S311 - to be repeated
        self._queue_of: dict[Stream, int] = {}

    def shares(self, load: Load) -> Shares:
        """Returns for each stream an equal share of its queue's."""
        for stream in load.streams:
            if stream not in self._queue_of:
                self._queue_of[stream] = self._random.randrange(self._queues)
        sizes = Counter(self._queue_of[stream] for stream in load.streams)
        return {stream: 1.0 / len(sizes) / sizes[self._queue_of[stream]] for stream in load.streams}


class Bands(Order):
    """TensorLights' bands, by the agent's own rule: the first band with streams has the link, and its jobs share alike.

    Jobs take turns with a ``rotate_seconds``. Workers of a job share alike, or get the model ``one_by_one``. With
    ``alone`` each job has a band of its own.
    """

    def __init__(self, *, rotate_seconds: float | None = None, one_by_one: bool = False, alone: bool = False) -> None:
        self.rotate_seconds = rotate_seconds
        self._one_by_one = one_by_one
        self._alone = alone
        self._known: tuple[object, Mapping[int, int]] = (None, {})

    def shares(self, load: Load) -> Shares:
        """Returns the shares of the streams in the first band that has any."""
        turn = None if self.rotate_seconds is None else turn_at(load.now, self.rotate_seconds)
        bands = self._bands(tuple(load.living), turn)
        first = min(bands[stream.job] for stream in load.streams)
        of_jobs: dict[int, list[Stream]] = {}
        for stream in sorted(load.streams):
            if bands[stream.job] == first:
                of_jobs.setdefault(stream.job, []).append(stream)
        served = [job[:1] if self._one_by_one else job for job in of_jobs.values()]
        return {stream: 1.0 / len(served) / len(job) for job in served for stream in job}

    def _bands(self, living: tuple[int, ...], turn: int | None) -> Mapping[int, int]:
        """Returns the band of each job. The last answer is kept, because it changes seldom."""
        if self._known[0] != (living, turn):
            self._known = (living, turn), self._ranked(living, turn)
        return self._known[1]

    def _ranked(self, living: Sequence[int], turn: int | None) -> Mapping[int, int]:
        if self._alone or len(living) == 1:
            return {job: rank for rank, job in enumerate(living)}
        queues = band_queues([Server(str(job), (), 0.0, float(job)) for job in living], turn)
        return {job: queues[str(job)].band for job in living}


QUEUES = 8
"""A network interface has so many hardware queues: one for each processor is usual."""


ONE_QUEUE = "one queue"
"""The name of the order with which the others are compared."""


def orders(seed: int) -> Mapping[str, Order]:
    """Returns the orders that are simulated, by their names."""
    return {
        ONE_QUEUE: OneQueue(),
        "one queue, first come": FirstCome(),
        "hashed queues": HashedQueues(QUEUES, seed),
        "tls-one": Bands(),
        "tls-rr": Bands(rotate_seconds=ROTATE_SECONDS),
        "tls-one, workers one by one": Bands(one_by_one=True),
        "a band each": Bands(alone=True),
    }
